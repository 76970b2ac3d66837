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
 * Envoy says nothing of the body when there is none, and when it is not told to bring it; of an upgrade it brings none.
 * Its filters do not see how HTTP/1.1 frames a body, so only a length, or a method whose body has no meaning (RFC 9110
 * §9.3), says that there is none.
 */
const hasNone = ({ method = '', size = 0 }: HttpAttributes, { list }: CheckedFields): boolean => {
  if (size > 0 || valuesOf(list, 'transfer-encoding').length > 0 || valuesOf(list, 'upgrade').length > 0) return false
  const [length] = valuesOf(list, 'content-length')
  return length === undefined ? withoutContent.has(method) : length === '0'
}

const withoutContent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS'])
