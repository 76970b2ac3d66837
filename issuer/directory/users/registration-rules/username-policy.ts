import { z } from 'zod'

/** How user names have to look that people choose. Without it, as all user names do. */
const policy = z.object({
  caseSensitive: z.boolean().default(true),
  minLength: z.number().int().min(1).max(128).default(1),
  maxLength: z.number().int().min(1).max(128).default(128),
  allowedChars: z
    .object({
      lowercase: z.boolean().default(true),
      uppercase: z.boolean().default(true),
      numbers: z.boolean().default(true),
      underscore: z.boolean().default(true),
    })
    .prefault({}),
})
export type UsernamePolicy = z.output<typeof policy>

/** `usernamePolicy` of the sign-in experience, which keeps it as it was sent: what cannot be read is not set. */
export const readUsernamePolicy = (kept: unknown): UsernamePolicy => policy.safeParse(kept).data ?? policy.parse({})

export type UsernameViolation =
  | 'required'
  | 'starts_with_number'
  | 'invalid_characters'
  | 'too_short'
  | 'too_long'
  | 'lowercase_not_allowed'
  | 'uppercase_not_allowed'
  | 'numbers_not_allowed'
  | 'underscore_not_allowed'

const classes = [
  ['lowercase', /[a-z]/],
  ['uppercase', /[A-Z]/],
  ['numbers', /[0-9]/],
  ['underscore', /_/],
] as const

/** The first thing that is wrong with a user name; undefined when it will do. */
export const checkUsername = (username: string, policy: UsernamePolicy): UsernameViolation | undefined => {
  if (username === '') return 'required'
  if (/^[0-9]/.test(username)) return 'starts_with_number'
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(username)) return 'invalid_characters'
  if (username.length < policy.minLength) return 'too_short'
  if (username.length > policy.maxLength) return 'too_long'
  const refused = classes.find(([name, characters]) => !policy.allowedChars[name] && characters.test(username))
  return refused && `${refused[0]}_not_allowed`
}
