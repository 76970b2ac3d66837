import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { ApiError } from './api-error.ts'

/** Bodies from this length on are packed for callers that take gzip. Bytes, as in OPA. */
const packedFrom = 1_024

/** How the body of an answer is written. */
export interface Form {
  pretty: boolean
  /** The caller's `Accept-Encoding`; undefined where answers are never packed. */
  accepts: string | undefined
}

export const sendJson = (
  response: ServerResponse,
  status: number,
  body: unknown,
  form: Form,
  fields = noFields,
): void => {
  const text = `${JSON.stringify(body, null, form.pretty ? 2 : 0)}\n`
  if (form.accepts !== undefined && text.length >= packedFrom && takesGzip(form.accepts)) {
    const packed = gzipSync(text)
    const head = ['Content-Encoding', 'gzip', 'Content-Length', String(packed.length)]
    response.writeHead(status, [...json, ...vary, ...fields, ...head]).end(packed)
    return
  }
  const length = ['Content-Length', String(Buffer.byteLength(text))]
  response.writeHead(status, [...json, ...vary, ...fields, ...length]).end(text)
}

/** Errors are always indented, as OPA's are. */
export const sendError = (response: ServerResponse, { status, code, message, errors, fields }: ApiError): void =>
  sendJson(response, status, { code, message, ...(errors && { errors }) }, { pretty: true, accepts: undefined }, fields)

const noFields: readonly string[] = []
const json = ['Content-Type', 'application/json']
const vary = ['Vary', 'Accept-Encoding']

/** RFC 9110 §12.5.3, where `gzip` is named. */
const takesGzip = (accepted: string): boolean =>
  accepted.split(',').some((offer) => {
    const [name, ...parameters] = offer.split(';').map((part) => part.trim().toLowerCase())
    return name === 'gzip' && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  })
