/** W3C Trace Context (level 1): what a caller says about the trace that a request belongs to. */
export interface Traceparent {
  /** 32 hexadecimal digits. */
  traceId: string
  /** 16 hexadecimal digits: the span of the caller. */
  parentId: string
  sampled: boolean
}

const format = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** In characters; later versions may add to the 55 of version 00. */
const longestTraceparent = 256

/** §3.2.2; undefined for whatever is not exactly one valid value. Of later versions what version 00 knows is read. */
export const parseTraceparent = (text: string): Traceparent | undefined => {
  if (text.length > longestTraceparent) return undefined
  const [, version, traceId, parentId, flags, more] = format.exec(text) ?? []
  if (version === undefined || traceId === undefined || parentId === undefined || flags === undefined) return undefined
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export const formatTraceparent = (traceId: string, spanId: string, sampled: boolean): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`

/** §3.3.1.1 and §3.3.1.5: what everybody passes on. */
const mostMembers = 32
const longestTracestate = 512

/** §3.3.1.3; keys may begin with a digit as in level 2. */
const member =
  /^([a-z0-9][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

export const isTracestate = (text: string): boolean => {
  if (text.length > longestTracestate) return false
  const members = text.split(',').map((part) => part.replace(/^[ \t]+|[ \t]+$/g, ''))
  const keys = members.filter((part) => part !== '').map((part) => member.exec(part)?.[1])
  return keys.length <= mostMembers && !keys.includes(undefined) && new Set(keys).size === keys.length
}
