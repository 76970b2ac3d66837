import type { Dispatcher } from 'undici'
import type { Connection } from '../platform/http/bounded-client.ts'
import type { OutboundAgent } from '../platform/http/outbound.ts'
import { brokenOff, isOwnFault, overdue, reasonOf } from './failure-reasons.ts'
import { loggedHeaders } from './logged-headers.ts'

/** One POST to a receiver and what came of it. Never throws: whatever goes wrong is the result. */
export interface AttemptResult {
  /** Only 2xx. Status line and headers decide; the body is read for the log. */
  succeeded: boolean
  status: number | null
  headers: Record<string, string> | null
  /** Its first 16 kB, as received (not decompressed). */
  body: Buffer | null
  /** For people: why it failed. */
  error: string | null
  address: string | null
  durationMs: number
  /** It failed for want of something on this machine, and says nothing of the receiver. */
  ownFault: boolean
}

export interface AttemptRequest {
  agent: OutboundAgent
  /** Whose connections are used. */
  owner: string
  url: URL
  headers: Record<string, string>
  body: Buffer
  /** For the whole POST, connecting and a dripping body included, in ms. */
  timeoutMs: number
  /** Ends the attempt early, as a failure. */
  signal?: AbortSignal
}

/** Of the body of an answer: then its connection is destroyed (platform/http/bounded-client.ts). */
export const maxResponseBytes = 16_384

export const attempt = async (request: AttemptRequest): Promise<AttemptResult> => {
  const { agent, owner, url, timeoutMs } = request
  const started = performance.now()
  const endsAt = started + timeoutMs
  let outcome = await post(request, agent.dispatcherOf(owner), endsAt)
  // RFC 9112 §9.3.1: the server may close an idle connection just as we write. Nothing of an answer came, so try once
  // more, on a new one.
  if (outcome.stale) {
    const fresh = agent.freshClient(url.origin)
    outcome = await post(request, fresh, endsAt)
    // By force: its body may still be coming.
    void fresh.destroy()
  }
  const { status, headers, chunks, size, error } = outcome
  const succeeded = status !== null && status >= 200 && status < 300
  return {
    succeeded,
    status,
    headers: headers && loggedHeaders(headers),
    // Copied: a piece keeps all that came with it in memory.
    body: status === null ? null : Buffer.concat(chunks, Math.min(size, maxResponseBytes)),
    error: status === null ? reasonOf(error, timeoutMs) : succeeded ? null : `The receiver answered ${status}.`,
    address: outcome.connection?.address ?? null,
    durationMs: Math.round(performance.now() - started),
    ownFault: status === null && isOwnFault(error),
  }
}

interface Outcome {
  status: number | null
  headers: Record<string, string | string[] | undefined> | null
  /** Of the body, as far as it was read, and their size in bytes. */
  chunks: Buffer[]
  size: number
  /** Why it ended; of no interest once there is a status. */
  error: unknown
  connection: Connection | undefined
  /** A kept connection broke before the first byte of an answer. */
  stale: boolean
}

const closed = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/**
 * One POST over one connection. The deadline is the only clock: undici's own are per phase, and the one for bodies
 * starts over with every byte.
 */
const post = ({ url, headers, body, signal }: AttemptRequest, dispatcher: Dispatcher, endsAt: number) =>
  new Promise<Outcome>((resolve) => {
    const outcome: Outcome = {
      status: null,
      headers: null,
      chunks: [],
      size: 0,
      error: null,
      connection: undefined,
      stale: false,
    }
    let controller: Dispatcher.DispatchController | undefined
    let answered = false
    let ended: unknown

    const finish = (error: unknown) => {
      if (ended !== undefined) return
      ended = error ?? true
      outcome.error = error
      clearTimeout(timer)
      if (signal) forget(signal, onAbort)
      resolve(outcome)
    }
    const stop = (reason: symbol) => {
      finish(reason)
      controller?.abort(stopped)
    }
    const timer = setTimeout(stop, Math.max(endsAt - performance.now(), 1), overdue)
    const onAbort = () => stop(brokenOff)
    if (signal?.aborted) return stop(brokenOff)
    if (signal) onceAborted(signal, onAbort)

    const options = {
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST' as const,
      headers,
      body,
      headersTimeout: 0,
      bodyTimeout: 0,
      /** Called by the client that carries the request (platform/http/bounded-client.ts). */
      onConnection: (connection: Connection) => {
        outcome.connection = connection
      },
    }
    dispatcher.dispatch(options, {
      onRequestStart(started) {
        controller = started
        // The time was up while it waited for a connection.
        if (ended !== undefined) started.abort(stopped)
      },
      onResponseStarted() {
        answered = true
      },
      onResponseStart(_controller, status, received) {
        // 1xx announce an answer (RFC 9110 §15.2).
        if (status < 200) return
        outcome.status = status
        outcome.headers = received
      },
      onResponseData(_controller, chunk) {
        outcome.chunks.push(chunk)
        outcome.size += chunk.length
      },
      onResponseEnd: () => finish(null),
      onResponseError(_controller, error) {
        const { code } = error as NodeJS.ErrnoException
        outcome.stale =
          !answered && outcome.connection?.reused === true && closed.has(code ?? '') && ended === undefined
        finish(error)
      },
    })
  })

/**
 * All POSTs share the listener of their signal: adding and removing one for each costs more than it should. What
 * they run does not throw.
 */
const listening = new WeakMap<AbortSignal, Set<() => void>>()
const onceAborted = (signal: AbortSignal, stop: () => void) => {
  let stops = listening.get(signal)
  if (stops === undefined) {
    const all = new Set<() => void>()
    stops = all
    listening.set(signal, all)
    signal.addEventListener('abort', () => {
      for (const one of all) one()
    })
  }
  stops.add(stop)
}
const forget = (signal: AbortSignal, stop: () => void) => listening.get(signal)?.delete(stop)

const stopped = new Error('This POST was stopped.')
