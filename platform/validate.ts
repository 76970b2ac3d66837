import { z } from 'zod'

/** Text that Postgres can hold: no NUL and no lone surrogate. */
export const storableText = z
  .string()
  .refine((text) => !text.includes('\u0000') && text.isWellFormed(), 'must not contain NUL or unpaired surrogates')

/** How deep objects and arrays are nested; a scalar is 0. */
export const depthOf = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 0
  let deepest = 0
  for (const member of Object.values(value)) deepest = Math.max(deepest, depthOf(member))
  return deepest + 1
}
