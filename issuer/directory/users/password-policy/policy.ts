import { z } from 'zod'

/** How good passwords have to be. In the shape that existing clients know (`passwordPolicy`), with `preset` besides. */
export const passwordPolicy = z.object({
  /** `nist`: at least 15 characters, or 8 where a second factor is mandatory (SP 800-63B-4 §3.1.1.2). */
  preset: z.enum(['default', 'nist']).default('default'),
  /** In code points, after NFKC. */
  length: z
    .object({ min: z.number().int().min(1).max(256).default(8), max: z.number().int().min(1).max(256).default(256) })
    .prefault({}),
  /** Of lower case, upper case, digits and others, how many there must be. Letters without case count as others. */
  characterTypes: z.object({ min: z.number().int().min(1).max(4).default(1) }).prefault({}),
  rejects: z
    .object({
      /** Passwords that everybody tries first, and those of a breach list where there is one. */
      pwned: z.boolean().default(true),
      repetitionAndSequence: z.boolean().default(true),
      /** What is known of the user. */
      userInfo: z.boolean().default(true),
      /** The operator's own: the name of the product, for instance. */
      words: z.array(z.string().min(1).max(128)).max(1_000).default([]),
    })
    .prefault({}),
})
export type PasswordPolicy = z.output<typeof passwordPolicy>

export const defaultPasswordPolicy: PasswordPolicy = passwordPolicy.parse({})

const nistLength = { alone: 15, withSecondFactor: 8 } as const

/** How short a password may be. */
export const shortestPassword = (
  { preset, length }: Pick<PasswordPolicy, 'preset' | 'length'>,
  { isMfaMandatory }: { isMfaMandatory: boolean },
): number => {
  if (preset === 'default') return length.min
  return Math.max(length.min, isMfaMandatory ? nistLength.withSecondFactor : nistLength.alone)
}
