import { refuse } from '../request/canonical-target.ts'
import type { HttpAttributes } from '../request/checked-request.ts'
import { valuesOf } from '../request/field-list.ts'
import type { CheckedFields } from './checked-fields.ts'

/**
 * The body that Envoy brings along (`with_request_body`), empty when there is none. Undefined when it brings only the
 * beginning, or none of a request that may have one: rules that need the body then refuse. Throws `AppError`
 * `invalid_request` (400) when it has another length than the request says.
 */
export const checkedBody = (http: HttpAttributes, fields: CheckedFields): Buffer | undefined => {
  const { body, rawBody } = http
  if (body && rawBody?.length) throw refuse('The check has the body twice.')
  if (fields.partialBody === undefined) return !body && !rawBody?.length && hasNone(http, fields) ? noBody : undefined
  // The text of a message is UTF-8: bytes that are not were replaced on the way.
  if (fields.partialBody || body?.includes('\ufffd')) return undefined
  const bytes = rawBody?.length ? rawBody : Buffer.from(body ?? '', 'utf8')
  const [length] = valuesOf(fields.list, 'content-length')
  if (length !== undefined && length !== String(bytes.length)) {
    throw refuse('The body has another length than the request says.')
  }
  return bytes
}

const noBody = Buffer.alloc(0)

/**
 * Envoy says nothing of the body when there is none, and when it is not told to bring it. HTTP/1.1 frames every body;
 * in HTTP/2 one need not be announced, but has no meaning for some methods (RFC 9110 §9.3).
 */
const hasNone = ({ protocol = '', method = '' }: HttpAttributes, { list }: CheckedFields): boolean => {
  const [length] = valuesOf(list, 'content-length')
  if (length !== undefined) return length === '0'
  if (valuesOf(list, 'transfer-encoding').length > 0) return false
  return /^HTTP\/1/.test(protocol) || withoutContent.has(method)
}

const withoutContent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS'])
