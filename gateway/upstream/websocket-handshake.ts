import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { problem } from '../refusals/problems.ts'
import { refuse } from '../request/canonical-target.ts'
import { eachField, type FieldList } from '../request/field-list.ts'
import { originOf } from '../request/headers.ts'
import type { ReadRequest, RoutedRequest } from '../request/request-context.ts'

/** What RFC 6455 asks of the two requests and answers that open a WebSocket. */

/**
 * Whether a request opens a WebSocket as RFC 6455 §4.1 has it. Whatever else names `Upgrade` is the plain request that
 * it also is: Node then keeps parsing HTTP, and no bytes are taken for another protocol.
 */
export const opensWebSocket = ({ method, headers, httpVersion }: IncomingMessage): boolean =>
  method === 'GET' &&
  httpVersion === '1.1' &&
  headers.upgrade?.toLowerCase() === 'websocket' &&
  headers['content-length'] === undefined &&
  headers['transfer-encoding'] === undefined

/**
 * RFC 6455 §10.2: a browser opens a WebSocket to another origin without a preflight and with cookies; it only names the
 * origin of the page. Allowed are the origins of `cors` and the API's own; other programs name no origin.
 */
export const checkOrigin = (context: RoutedRequest): void => {
  const { cors } = context.route
  if (!cors) return
  const origin = originOf(context.headers)
  if (origin === undefined || cors.allowed(origin) !== undefined) return
  const { host } = context.request
  // The origin of a page at the full name of the host keeps the final dot, which `host` has lost.
  const page = origin.replace(/\.(?=$|:\d+$)/, '')
  if (page !== `https://${host}` && page !== `http://${host}`) throw problem('origin_not_allowed')
}

/** RFC 6455 §4.2.1; returns the key. `Connection: upgrade` was checked by Node's parser. */
export const checkHandshake = ({ headers }: ReadRequest): string => {
  const fields = { 'sec-websocket-key': '', 'sec-websocket-version': '' }
  eachField(headers.forwardable, (name, value) => {
    if (name !== 'sec-websocket-key' && name !== 'sec-websocket-version') return
    if (fields[name] !== '') throw refuse(`The request has more than one ${name} field.`)
    fields[name] = value
  })
  const key = fields['sec-websocket-key']
  if (!/^[A-Za-z0-9+/]{22}==$/.test(key)) throw refuse('The Sec-WebSocket-Key is not 16 octets in base64.')
  if (fields['sec-websocket-version'] !== '13') {
    throw problem('upgrade_required', { headers: { 'sec-websocket-version': '13', upgrade: 'websocket' } })
  }
  return key
}

/** RFC 6455 §4.2.2 (5.4). */
const acceptOf = (key: string): string => hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64')

/** Whether an upstream agreed to the WebSocket that was asked for with this key. */
export const isAccepted = ({ headers, statusCode }: IncomingMessage, key: string): boolean =>
  statusCode === 101 &&
  headers.upgrade?.toLowerCase() === 'websocket' &&
  headers['sec-websocket-accept'] === acceptOf(key)

export type HeaderRecord = Record<string, string | string[]>

/** The fields of the request that asks an upstream at `origin` for a WebSocket. */
export const handshakeHeaders = (fields: FieldList, origin: string): HeaderRecord => {
  const headers: HeaderRecord = Object.create(null)
  eachField(fields, (name, value) => {
    const earlier = headers[name]
    headers[name] = earlier === undefined ? value : [earlier, value].flat()
  })
  return { ...headers, host: new URL(origin).host, connection: 'Upgrade', upgrade: 'websocket' }
}
