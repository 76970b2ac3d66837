import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type Field, type Http2Frames, openHttp2Frames, requestFields } from '../../support/http2-frames.ts'
import type { AnyRequest, Row, Way } from './row.ts'

/** What came back for a row. */
export interface Answers {
  statuses: readonly number[]
  /** All of it, as text. */
  text: string
  /** Over HTTP/2: the error that the stream, or the connection with it, ended with. */
  reset: number | 'closed' | undefined
}

const split = (field: string): Field => {
  const colon = field.indexOf(':')
  return [field.slice(0, colon), field.slice(colon + 1).trim()]
}
const hostOf = (request: AnyRequest): string | undefined => ('host' in request ? request.host : 'api.test')

const http1Bytes = (request: AnyRequest): string => {
  const { method = 'GET', target, fields = [], body, chunked = false } = request
  const host = hostOf(request)
  const framing = body === undefined ? [] : [chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`]
  const content = chunked ? `${body!.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : (body ?? '')
  return [
    `${method} ${target} HTTP/1.1`,
    ...(host === undefined ? [] : [`Host: ${host}`]),
    ...fields,
    ...framing,
    'Connection: close',
    '',
    content,
  ].join('\r\n')
}

const http2Fields = (request: AnyRequest): { fields: Field[]; body?: string } => {
  const { method = 'GET', target, fields = [], body, chunked = false } = request
  const host = hostOf(request)
  const pseudo = requestFields(target, { method, authority: host ?? '' })
  const sent = [
    ...pseudo.filter(([name]) => host !== undefined || name !== ':authority'),
    ...fields.map(split).map(([name, value]): Field => [name.toLowerCase(), value]),
    ...(body === undefined || chunked ? [] : [['content-length', String(body.length)] as const]),
  ]
  return { fields: sent, ...(body !== undefined && { body }) }
}

/** Everything that comes back until the gateway closes the connection. */
const overHttp1 = (bytes: string, { scheme }: Way, port: number): Promise<Answers> =>
  new Promise((resolve, reject) => {
    const address = { port, host: '127.0.0.1' }
    const socket =
      scheme === 'http'
        ? connectTcp(address)
        : connectTls({ ...address, servername: 'api.test', ALPNProtocols: ['http/1.1'], rejectUnauthorized: false })
    let text = ''
    socket.once(scheme === 'http' ? 'connect' : 'secureConnect', () => socket.write(bytes, 'latin1'))
    socket.on('data', (chunk) => (text += chunk.toString('latin1')))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    socket.on('close', () => {
      const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
      resolve({ statuses, text, reset: undefined })
    })
  })

const askHttp2 = async (client: Http2Frames, request: NonNullable<Row['http2']>): Promise<Answers> => {
  const { status, body, reset } = await client.outcome(client.request(request.fields, request))
  return { statuses: status === undefined ? [] : [status], text: body, reset }
}

const overHttp2 = async (request: NonNullable<Row['http2']>, port: number): Promise<Answers> => {
  const client = await openHttp2Frames({ port })
  const answers = await askHttp2(client, request)
  await client.close()
  return answers
}

/** Whether a row exists in the protocol of this way. */
export const hasRow = ({ protocol }: Way, { request, http1, http2 }: Row): boolean =>
  request !== undefined || (protocol === 'http1' ? http1 : http2) !== undefined

/** Sends a row on a connection of its own. */
export const sendRow = (way: Way, row: Row, port: number): Promise<Answers> =>
  way.protocol === 'http1'
    ? overHttp1(row.http1 ?? http1Bytes(row.request!), way, port)
    : overHttp2(row.http2 ?? http2Fields(row.request!), port)

const good: AnyRequest = { target: '/public/good' }

/** A client that sends good requests the same way; over HTTP/2 on one connection, which nothing may disturb. */
export const openGoodClient = async (way: Way, port: number) => {
  const client = way.protocol === 'http2' ? await openHttp2Frames({ port }) : undefined
  return {
    send: () => (client ? askHttp2(client, http2Fields(good)) : overHttp1(http1Bytes(good), way, port)),
    close: async () => client?.close(),
  }
}
