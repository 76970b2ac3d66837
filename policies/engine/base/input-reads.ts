import { z } from 'zod'

/** Which members of the input an entrypoint can read: by member its own members that are read, or null = all of it. */
export const inputReadsSchema = z.record(z.string(), z.union([z.null(), z.array(z.string())])).nullable()

/** `null` for the whole input. */
export type InputReads = z.infer<typeof inputReadsSchema>

/**
 * The same as deep as rules name members: JSON pointers (RFC 6901) to what is read with all that is in it. `null` for
 * the whole input.
 */
export const inputPathsSchema = z.array(z.string()).nullable()

export type InputPaths = z.infer<typeof inputPathsSchema>

/**
 * The part of the input that the reads cover. A member that is not an object is kept whole, so that rules see what it
 * is.
 */
export const projectInput = (input: unknown, reads: InputReads): unknown => {
  if (reads === null || !isObject(input)) return input
  const part: Record<string, unknown> = {}
  for (const key of Object.keys(reads)) {
    if (!Object.hasOwn(input, key)) continue
    const members = reads[key]
    const value = input[key]
    part[key] = members && isObject(value) ? pick(value, members) : value
  }
  return part
}

/** An assignment to `__proto__` would not make a member, so a rule that reads it gets all of them. */
const pick = (value: Record<string, unknown>, members: readonly string[]): Record<string, unknown> => {
  if (members.includes('__proto__')) return value
  const part: Record<string, unknown> = {}
  for (const member of members) if (Object.hasOwn(value, member)) part[member] = value[member]
  return part
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
