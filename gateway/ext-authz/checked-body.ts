import { refuse } from '../request/canonical-target.ts'
import type { HttpAttributes } from '../request/checked-request.ts'
import { valuesOf } from '../request/field-list.ts'
import type { CheckedFields } from './checked-fields.ts'

/**
 * The body that Envoy brings along (`with_request_body`). Undefined when it brings none or only its beginning: rules
 * that need the body then refuse. Throws `AppError` `invalid_request` (400) when it has another length than the request
 * says.
 */
export const checkedBody = ({ body, rawBody }: HttpAttributes, fields: CheckedFields): Buffer | undefined => {
  const { partialBody, list } = fields
  if (body && rawBody?.length) throw refuse('The check has the body twice.')
  if (partialBody !== false) return undefined
  const bytes = rawBody?.length ? rawBody : Buffer.from(body ?? '', 'utf8')
  // The text of a message is UTF-8: bytes that are not were replaced on the way.
  if (body?.includes('\ufffd')) return undefined
  const [length] = valuesOf(list, 'content-length')
  if (length !== undefined && length !== String(bytes.length)) {
    throw refuse('The body has another length than the request says.')
  }
  return bytes
}
