import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { readWhole } from '../../platform/http/read-whole.ts'

/** Of a form of ours, in bytes. */
const maxFormBytes = 16_384

/** What a page sent: every value by name, in order. */
export type Form = ReadonlyMap<string, readonly string[]>

/** A form that no page of ours sends. */
export class FormError extends Error {
  override readonly name = 'FormError'
  readonly status: 400 | 413 | 415

  constructor(status: FormError['status'], options?: ErrorOptions) {
    super('The form cannot be read.', options)
    this.status = status
  }
}

const decode = (text: string): string => {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    // Percent-escapes can spell neither an unpaired surrogate nor bad UTF-8; NUL they can.
    if (!decoded.includes('\0')) return decoded
  } catch (cause) {
    throw new FormError(400, { cause })
  }
  throw new FormError(400)
}

/** Strict: nothing is read as something else than what was sent. Throws `FormError`. */
export const parseForm = (text: string): Form => {
  const form = new Map<string, string[]>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals === -1 ? pair : pair.slice(0, equals))
    form.set(name, [...(form.get(name) ?? []), equals === -1 ? '' : decode(pair.slice(equals + 1))])
  }
  return form
}

export const readForm = async (request: IncomingMessage): Promise<Form> => {
  const [mediaType = ''] = (request.headers['content-type'] ?? '').split(';', 1)
  if (mediaType.trim().toLowerCase() !== 'application/x-www-form-urlencoded') throw new FormError(415)
  const body = await readWhole(request.iterator({ destroyOnReturn: false }), maxFormBytes, () => new FormError(413))
  if (!isUtf8(body)) throw new FormError(400)
  return parseForm(body.toString())
}

/** The value of a field that a form has once; undefined when it is missing or repeated. */
export const onlyValue = (form: Form, name: string): string | undefined => {
  const values = form.get(name) ?? []
  return values.length === 1 ? values[0] : undefined
}
