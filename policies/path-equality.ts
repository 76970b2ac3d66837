import { z } from 'zod'

/**
 * Which spellings of a path an API takes for the same: what one handler serves must meet the same rules, however it is
 * asked for. Case is that of A to Z; an API that also folds other letters cannot be told apart from one that does not
 * by the paths it is sent.
 */
export const pathEqualitySchema = z.strictObject({
  case: z.enum(['sensitive', 'insensitive']).default('sensitive'),
  trailingSlash: z.enum(['significant', 'ignore']).default('significant'),
})

export type PathEquality = z.output<typeof pathEqualitySchema>

export const nothingIsEqual: PathEquality = { case: 'sensitive', trailingSlash: 'significant' }

/** A canonical path and its decoded segments; a trailing slash is a last, empty segment. */
export interface SpeltPath {
  path: string
  segments: string[]
}

/** The one spelling of all that `equality` takes for the same: A to Z in small letters, no trailing slash. */
export const foldedPath = (spelt: SpeltPath, equality: PathEquality): SpeltPath => {
  let { path, segments } = spelt
  if (equality.case === 'insensitive' && /[A-Z]/.test(path)) {
    // Escapes stay in capitals, as the canonical path has them.
    path = path.replace(/%[0-9A-F]{2}|[A-Z]+/g, (text) => (text.startsWith('%') ? text : text.toLowerCase()))
    segments = segments.map(lowerCased)
  }
  if (equality.trailingSlash === 'ignore' && segments.at(-1) === '') {
    path = path.slice(0, -1)
    segments = segments.slice(0, -1)
  }
  return { path, segments }
}

/** A to Z only: beyond ASCII what is the same differs from one API to the next. */
export const lowerCased = (segment: string): string =>
  /[A-Z]/.test(segment) ? segment.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : segment

/** The same path without the parameters of its segments: `/a;v=1/b` → `/a/b`. */
export const withoutMatrixParameters = ({ path, segments }: SpeltPath): SpeltPath => ({
  path: path.replace(/(?:;|%3B)[^/]*/g, ''),
  segments: segments.map((segment) => segment.replace(/;.*/s, '')),
})
