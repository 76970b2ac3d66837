import { EventEmitter } from 'node:events'
import { type OutgoingHttpHeaders, validateHeaderName, validateHeaderValue } from 'node:http'
import type { Socket } from 'node:net'
import type { CheckedRequest } from '../request/checked-request.ts'
import { type CheckResponse, headerToSet, type OkResponse, type Value } from './messages.ts'

/**
 * An answer to a check, with what the pipeline uses of Node's `ServerResponse` and the same meaning. What would have
 * been sent to a client, a refusal or a failure of ours, is what Envoy is told to send: always a denial, never an error
 * of gRPC, which `failure_mode_allow` would take for a yes.
 */
export class CheckAnswer extends EventEmitter {
  readonly req: CheckedRequest
  statusCode = 200
  headersSent = false
  writableEnded = false
  destroyed = false
  /** Of no meaning: an answer does not end its connection. */
  shouldKeepAlive = true
  /** What the next filters of Envoy see of it. */
  metadata: () => Record<string, Value> = () => ({})
  readonly #send: (response: CheckResponse) => void
  #head: OutgoingHttpHeaders = {}

  constructor(request: CheckedRequest, send: (response: CheckResponse) => void) {
    super()
    this.req = request
    this.#send = send
  }

  get socket(): Socket {
    return this.req.socket
  }

  get writableFinished(): boolean {
    return this.writableEnded && !this.destroyed
  }

  /** Throws for what cannot be sent, as `ServerResponse` does. */
  writeHead(status: number, fields: OutgoingHttpHeaders = {}): this {
    for (const name in fields) {
      validateHeaderName(name)
      validateHeaderValue(name, String(fields[name]))
    }
    this.statusCode = status
    this.headersSent = true
    this.#head = fields
    return this
  }

  /** Denies. */
  end(body = ''): this {
    const headers = Object.entries(this.#head)
      .filter(([name]) => !framing.has(name))
      .map(([name, value]) => headerToSet(name, String(value)))
    return this.#finish({
      status: { code: grpcStatus(this.statusCode) },
      deniedResponse: { status: { code: this.statusCode }, headers, body },
      dynamicMetadata: { fields: this.metadata() },
    })
  }

  /** The only way to a yes. Throws for a field that cannot be sent. */
  allow(okResponse: OkResponse): this {
    for (const { header } of okResponse.headers) {
      validateHeaderName(header.key)
      validateHeaderValue(header.key, header.value)
    }
    this.headersSent = true
    return this.#finish({ status: { code: 0 }, okResponse, dynamicMetadata: { fields: this.metadata() } })
  }

  /** Nobody waits for it any more. */
  destroy(): void {
    if (this.writableEnded || this.destroyed) return
    this.destroyed = true
    this.emit('close')
  }

  #finish(response: CheckResponse): this {
    if (this.writableEnded || this.destroyed) return this
    this.writableEnded = true
    this.#send(response)
    this.emit('close')
    return this
  }
}

/** Envoy frames what it sends. */
const framing: ReadonlySet<string> = new Set(['content-length', 'connection', 'transfer-encoding'])

/** `google.rpc.Code`, as the guide to errors of Google's APIs has it for a status of HTTP. */
const codes: Partial<Record<number, number>> = {
  400: 3, // INVALID_ARGUMENT
  401: 16, // UNAUTHENTICATED
  403: 7, // PERMISSION_DENIED
  404: 5, // NOT_FOUND
  429: 8, // RESOURCE_EXHAUSTED
  500: 13, // INTERNAL
  503: 14, // UNAVAILABLE
  504: 4, // DEADLINE_EXCEEDED
}

const grpcStatus = (status: number): number => codes[status] ?? (status >= 500 ? 13 : 7)
