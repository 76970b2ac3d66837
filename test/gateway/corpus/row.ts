import type { Field } from '../../support/http2-frames.ts'

/** How requests reach the gateway. */
export interface Way {
  name: string
  protocol: 'http1' | 'http2'
  scheme: 'http' | 'https'
}

/** A request that any protocol can say. */
export interface AnyRequest {
  /** Default GET. */
  method?: string
  target: string
  /** Default `api.test`; undefined: none. */
  host?: string | undefined
  /** `Name: value`, sent in this order; names in lower case over HTTP/2. */
  fields?: readonly string[]
  /** Sent with its length, unless `chunked`, which HTTP/2 always is in effect. */
  body?: string
  chunked?: boolean
}

/** What the upstream sees of a request that goes on. `{scheme}` stands for that of the connection. */
export interface Forwarded {
  method?: string
  target: string
  body?: string
  /** Values by lower-case name, joined by `, `; undefined: the field must not be there, in any spelling. */
  fields?: Readonly<Record<string, string | undefined>>
}

/**
 * `statuses`: of every answer on the connection, in order. Over HTTP/2 a 400 may be a stream that is reset (RFC 9113
 * §8.1.1: with PROTOCOL_ERROR; Node says INTERNAL_ERROR of a body longer than its length), or the whole connection.
 */
export interface Expectation {
  statuses: readonly number[]
  /** Of the last problem document. */
  code?: string
  forwarded: readonly Forwarded[]
}

/** A hostile request and what must become of it. */
export interface Row {
  name: string
  /** `request`: every protocol has it. `http1`: bytes of HTTP/1.1. `http2`: fields, body, trailers of one stream. */
  request?: AnyRequest
  http1?: string
  http2?: { fields: readonly Field[]; body?: string; trailers?: readonly Field[] }
  expect: Expectation
}

export const refused = (status = 400, code = status === 400 ? 'invalid_request' : undefined): Expectation => ({
  statuses: [status],
  forwarded: [],
  ...(code !== undefined && { code }),
})
export const forwarded = (target: string, more: Omit<Forwarded, 'target'> = {}): Expectation => ({
  statuses: [200],
  forwarded: [{ target, ...more }],
})

/** The lines of an HTTP/1.1 message, as its bytes. */
export const lines = (...texts: readonly string[]): string => texts.join('\r\n')
