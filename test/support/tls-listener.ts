import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { SecureClientSessionOptions } from 'node:http2'
import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuthority, type ServerCertificate } from './certificates.ts'

/** An authority and a folder for the files that `listen.tls` names. */
export const createTlsFiles = () => {
  const authority = createAuthority()
  const folder = mkdtempSync(join(tmpdir(), 'surrogate-tls-'))
  const path = (name: string) => join(folder, name)
  const writePair = (name: string, { cert, key }: ServerCertificate) => {
    writeFileSync(path(`${name}.pem`), cert)
    writeFileSync(path(`${name}.key`), key)
    return { cert: path(`${name}.pem`), key: path(`${name}.key`) }
  }
  return {
    authority,
    path,
    /** Writes a pair, in place of the one of that name. */
    writePair,
    /** One for a host. */
    pair: (host: string, name = host.replace('*', 'any')) => writePair(name, authority.issue(host)),
    remove() {
      authority.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface Http2Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
  trailers: IncomingHttpHeaders | undefined
}

/** A client of HTTP/2 with one connection. */
export const openHttp2 = async (url: string, options: SecureClientSessionOptions) => {
  const session: ClientHttp2Session = connect(url, { servername: 'localhost', ...options })
  session.on('error', () => {})
  await new Promise<void>((resolve, reject) => {
    session.once('connect', () => resolve())
    session.once('close', () => reject(new Error('the connection was closed')))
  })
  const send = (headers: OutgoingHttpHeaders, body?: string | Buffer): Promise<Http2Answer> =>
    new Promise((resolve, reject) => {
      const stream = session.request({ ':authority': 'localhost', ...headers }, { endStream: body === undefined })
      const chunks: Buffer[] = []
      let answer: IncomingHttpHeaders = {}
      let trailers: IncomingHttpHeaders | undefined
      stream.on('response', (received) => {
        answer = received
      })
      stream.on('trailers', (received) => {
        trailers = received
      })
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('error', reject)
      stream.on('close', () => {
        if (answer[':status'] === undefined) return reject(new Error(`no answer (${stream.rstCode})`))
        resolve({
          status: Number(answer[':status']),
          headers: answer,
          body: Buffer.concat(chunks).toString(),
          trailers,
        })
      })
      if (body !== undefined) stream.end(body)
    })
  return { session, send, close: () => session.destroy() }
}
