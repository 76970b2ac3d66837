import type { ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import type { DecidedRequest } from '../request/request-context.ts'
import { addAnswerFields, answerHeaders } from './answer-headers.ts'
import { ClientRate } from './client-rate.ts'
import { answerTrailers } from './trailers.ts'

/** Longer bodies are not worth copying. */
const asTextBytes = 16_384

const flushHead = (answer: AnswerToClient): void => answer.flushHead()

export type AnswerFields = Readonly<Record<string, string | string[] | undefined>>

/**
 * The answer of an upstream on its way to the client. The base of `ForwardedRequest`, not a part of it: one object less
 * for each request.
 */
export class AnswerToClient {
  /** As sent to the client; 0 = no answer has begun. */
  status = 0
  readonly #context: DecidedRequest
  readonly #response: ServerResponse
  /** Of the upstream, ms. */
  readonly #clientTimeout: number
  #clientRate: ClientRate | undefined
  #bodyBegun = false
  /** As announced, in bytes. */
  #length = Number.NaN
  /** Bytes given to the client since it last had taken all of them. */
  #given = 0

  constructor(context: DecidedRequest, clientTimeout: number) {
    this.#context = context
    this.#response = context.response
    this.#clientTimeout = clientTimeout
  }

  /** Made when it is needed: most requests never wait for their client. */
  get clientRate(): ClientRate {
    this.#clientRate ??= new ClientRate(this.#clientTimeout)
    return this.#clientRate
  }

  /** Somebody else than the client is waited for. */
  restClientRate(): void {
    this.#clientRate?.rest()
  }

  /** Throws for a head that cannot be sent on. */
  beginAnswer(status: number, headers: AnswerFields): void {
    const { request, incoming, route, id } = this.#context
    const flat = addAnswerFields(answerHeaders(status, headers, route), this.#context)
    flat.push('x-request-id', id)
    // What is still to come of the request will not be read, so nothing can follow it on this connection.
    if (request.bodyLength !== 0 && !incoming.complete) flat.push('connection', 'close')
    this.#length = Number(headers['content-length'])
    this.#response.writeHead(status, flat)
    this.status = status
    // Node keeps the head for the first piece of the body, which of a stream of events may come much later.
    if (Number.isNaN(this.#length)) process.nextTick(flushHead, this)
  }

  flushHead(): void {
    if (!this.#bodyBegun && !this.#response.destroyed) this.#response.flushHeaders()
  }

  passOn(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bodyBegun = true
    if (chunk.length === this.#length) return void this.#endWith(chunk)
    this.#given += chunk.length
    if (this.#response.write(chunk)) return
    controller.pause()
    this.#response.once('drain', () => {
      this.clientRate.moved(this.#given)
      this.#given = 0
      controller.resume()
    })
  }

  /**
   * The whole body at once. As text of bytes it goes into one string with the head: one plain write, ~6 % of a request
   * cheaper than two buffers.
   */
  #endWith(body: Buffer): void {
    if (body.length > asTextBytes) this.#response.end(body)
    else this.#response.end(body.toString('latin1'), 'latin1')
  }

  endAnswer(trailers: AnswerFields | undefined): void {
    this.#bodyBegun = true
    const passed = trailers && answerTrailers(this.#context, trailers)
    if (passed) this.#response.addTrailers(passed)
    if (!this.#response.writableEnded) this.#response.end()
  }
}
