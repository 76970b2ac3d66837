import { readJson } from '../json.ts'

/** Objects nested deeper than this are refused, so that whatever walks a token later needs no limit of its own. */
const maxDepth = 16

/**
 * Parses a JSON object strictly, as tokens need it (RFC 7515 §4, RFC 7519 §4 allow to reject repeated member names).
 * Returns undefined for: anything but an object, what `readJson` refuses, nesting deeper than 16.
 */
export const parseJsonObject = (text: string): Record<string, unknown> | undefined => {
  const read = readJson(text, { maxDepth })
  if (!('value' in read)) return undefined
  const { value } = read
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return value as Record<string, unknown>
}
