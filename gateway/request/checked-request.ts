import type { Socket } from 'node:net'

/**
 * A request that Envoy asks about, with what the pipeline uses of Node's `IncomingMessage` and the same meaning: as if
 * Envoy's client had sent it to this gateway in HTTP/1.1. `readCheck` writes it.
 */
export class CheckedRequest {
  readonly httpVersion = '1.1'
  readonly httpVersionMajor = 1
  readonly httpVersionMinor = 1
  /** Nothing is read from a connection. */
  readonly complete = true
  method = ''
  url = ''
  host: string | undefined
  rawHeaders: string[] = []
  /** Of the client, as Envoy has it. */
  socket = {} as Socket & { encrypted?: boolean }
  /** Whole, as Envoy has brought it. */
  body: Buffer | undefined
  /** What Envoy's client called itself; for the access log. */
  readonly headers: { 'user-agent'?: string } = {}
  readonly message: CheckRequest
  /** Who asks: the address of the connection that the check came on. */
  readonly asker: string

  constructor(message: CheckRequest, asker: string) {
    this.message = message
    this.asker = asker
  }
}

/**
 * `envoy.service.auth.v3.CheckRequest`, as far as it is read, in the names that proto-loader gives its members. What a
 * message does not say is missing.
 */
export interface CheckRequest {
  attributes?: {
    source?: {
      address?: { socketAddress?: { address?: string } }
      /** PEM, percent-encoded. */
      certificate?: string
    }
    request?: { http?: HttpAttributes }
    tlsSession?: { sni?: string }
  }
}

export interface HttpAttributes {
  method?: string
  /** With the query. */
  path?: string
  host?: string
  scheme?: string
  /** Bytes of the body that Envoy has received; -1: not known. */
  size?: number
  query?: string
  fragment?: string
  /** Each name once; several values are joined with commas. */
  headers?: Record<string, string>
  /** With `encode_raw_headers`, in place of `headers`. */
  headerMap?: { headers?: { key?: string; value?: string; rawValue?: Buffer }[] }
  body?: string
  rawBody?: Buffer
}
