import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerCalls } from '../harness/calls.ts'

/**
 * Who receives webhooks, or is told of logouts: answers 204 as soon as the body is there, and notes when each event arrived
 * first. A second
 * port takes connections and never answers.
 */
export type SinkPorts = { port: number; hungPort: number }

/** When an event arrived, in ms since the epoch, by its id; a logout by its path. */
export type Arrivals = Record<string, number>

const first = new Map<string, number>()
let requests = 0
let signed = 0
let wanted = Number.POSITIVE_INFINITY
let reached = () => {}

const server = createServer((request, response) => {
  const id = String(request.headers['webhook-id'] ?? request.url)
  request.resume()
  request.on('end', () => {
    requests += 1
    if (request.headers['webhook-signature']) signed += 1
    if (!first.has(id)) first.set(id, performance.timeOrigin + performance.now())
    response.writeHead(204).end()
    if (requests >= wanted) reached()
  })
})
const hung = createServer(() => {})

const listen = (one: typeof server) =>
  new Promise<number>((resolve) => one.listen(0, '127.0.0.1', () => resolve((one.address() as AddressInfo).port)))

answerCalls({
  start: async (): Promise<SinkPorts> => ({ port: await listen(server), hungPort: await listen(hung) }),
  clear: () => {
    first.clear()
    requests = 0
    signed = 0
    wanted = Number.POSITIVE_INFINITY
  },
  /** Resolves once so many requests have arrived since `clear`, with how many were signed. */
  until: (count: number) =>
    new Promise<{ signed: number; different: number }>((resolve) => {
      wanted = count
      reached = () => resolve({ signed, different: first.size })
      if (requests >= wanted) reached()
    }),
  arrivals: (): Arrivals => Object.fromEntries(first),
  stop: () => {
    for (const one of [server, hung]) {
      one.close()
      one.closeAllConnections()
    }
  },
})
