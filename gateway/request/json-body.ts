import { isUtf8 } from 'node:buffer'
import { readJson } from '../../platform/json.ts'
import type { AppError } from '../../platform/problem.ts'
import { problem } from '../refusals/problems.ts'
import { refuse } from './canonical-target.ts'
import { onlyField, type RequestHeaders } from './headers.ts'

/** Containers within containers; whatever walks a body later needs no limit of its own. */
const maxDepth = 64

/** RFC 8259 §11 and RFC 6839 §3.1: `application/json`, or a type that ends in `+json`; in UTF-8 (RFC 8259 §8.1). */
const jsonType = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json[ \t]*(?:;[ \t]*charset=(?:utf-8|"utf-8")[ \t]*)?$/i

/** Throws 415 for a body that does not say that it is JSON, or that is coded: the API might read something else. */
export const requireJson = (headers: RequestHeaders): void => {
  if (!jsonType.test(onlyField(headers, 'content-type') ?? '')) {
    throw unsupported('The request body must be application/json, or of a type that ends in +json, in UTF-8.')
  }
  const coding = onlyField(headers, 'content-encoding')
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    // RFC 9110 §12.5.3: so that the client knows which of both it was.
    throw unsupported('The request body must not be compressed here.', { 'accept-encoding': 'identity' })
  }
}

const unsupported = (detail: string, headers: Record<string, string> = {}): AppError =>
  problem('unsupported_media_type', { detail, headers })

/** The value of a body that is I-JSON (RFC 7493), which every parser reads the same. Throws 400 for all others. */
export const jsonBody = (bytes: Buffer): unknown => {
  if (!isUtf8(bytes)) throw refuse('The request body is not UTF-8.')
  const read = readJson(bytes.toString('utf8'), { maxDepth, exactNumbers: true, ignoreCase: true })
  if ('value' in read) return read.value
  throw refuse(`The request body ${read.fault}.`)
}
