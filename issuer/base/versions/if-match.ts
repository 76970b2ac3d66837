import { problem } from '../errors/problems.ts'

/** RFC 9110 §13.1.1: any version there is, or one of these. */
export type IfMatch = '*' | readonly string[]

export const etagOf = (version: number): string => `"${version}"`

const tag = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/
const list = new RegExp(`^(?:[\\t ]*,)*[\\t ]*${tag.source}(?:[\\t ]*,(?:[\\t ]*${tag.source})?)*[\\t ]*$`)

/** Throws 400 for what is not of the form of the header. */
export const readIfMatch = (header: string): IfMatch => {
  if (header.trim() === '*') return '*'
  if (list.test(header)) return header.match(new RegExp(tag, 'g')) ?? []
  throw problem('guard.invalid_input', { detail: 'If-Match: must be * or entity tags, such as "7"' })
}

/** Strong comparison: a weak tag is never the one. */
export const matches = (condition: IfMatch, version: number): boolean =>
  condition === '*' || condition.includes(etagOf(version))
