import type { ServerResponse } from 'node:http'
import { pause } from '../../../platform/wake-up.ts'
import { overloaded } from '../../base/errors/problems.ts'
import type { ConsoleSession } from '../session-store.ts'
import type { GatewayClient } from './client.ts'
import { followGateway } from './follow.ts'
import type { Gateway } from './gateways.ts'
import type { TokenFor } from './tokens.ts'

/** The streams of decisions of all gateways as one stream for a page. */
export interface JoinedStreams {
  /** Answers until the reader leaves or may not read on. Throws 503 when there are too many. */
  open(response: ServerResponse, asked: AskedStream): Promise<void>
  close(): Promise<void>
}

export interface AskedStream {
  gateways: readonly Gateway[]
  filter: Readonly<Record<string, string | undefined>>
  since: string | undefined
  session: ConsoleSession
  /** As it is now; undefined: it is over. */
  peek(): Promise<ConsoleSession | undefined>
}

export type JoinedEnd = 'signed_out' | 'closing'

const mostStreams = 64
const mostOfPerson = 8
/** Between looks whether the person may read on. In ms. */
const lookMs = 1_000
const silenceMs = 15_000
/** A reader who takes nothing for so long has gone. In ms. */
const stuckMs = 60_000

export const createJoinedStreams = (parts: {
  client: GatewayClient
  tokenFor: TokenFor
  now(): Date
}): JoinedStreams => {
  const { client, tokenFor, now } = parts
  const closing = new AbortController()
  const open = new Map<ServerResponse, { person: string; ended: Promise<void> }>()

  const serve = async (response: ServerResponse, asked: AskedStream) => {
    const { gateways, filter, since, peek } = asked
    let session = asked.session
    const over = new AbortController()
    let because: JoinedEnd | undefined
    const end = (reason?: JoinedEnd) => {
      because ??= reason
      over.abort()
    }
    const onClosing = () => end('closing')
    closing.signal.addEventListener('abort', onClosing)
    response.on('close', () => over.abort())
    // Written whole; whoever writes waits until it is taken.
    let wrote = performance.now()
    const write = async (text: string) => {
      wrote = performance.now()
      if (response.write(text) || over.signal.aborted) return
      await drained(response, over.signal, () => response.destroy())
    }
    const event = (name: string, data: object) => write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)

    const follow = (gateway: Gateway) => {
      const { name } = gateway
      return followGateway({
        ...{ gateway, client, filter, since, now, signal: over.signal },
        token: (options) => tokenFor(session, gateway.audience, options),
        told: {
          decision: (record) => event('decision', { gateway: name, ...record }),
          lost: (lost) => event('lost', { gateway: name, lost }),
          state: (state, reason) =>
            event('gateway', { gateway: name, state, ...(reason !== undefined && { because: reason }) }),
        },
      })
    }

    /** What cannot be found out just now is asked again. */
    const watch = async () => {
      while (!over.signal.aborted) {
        await pause(lookMs, over.signal)
        if (over.signal.aborted) return
        const present = await peek().catch(() => session)
        if (!present || session.scopes.some((name) => !present.scopes.includes(name))) return end('signed_out')
        session = present
        if (performance.now() - wrote >= silenceMs && response.writableLength === 0) await write(':\n\n')
      }
    }

    response.flushHeaders()
    await Promise.all([watch(), ...gateways.map(follow)])
    closing.signal.removeEventListener('abort', onClosing)
    if (because !== undefined && !response.destroyed)
      response.end(`event: end\ndata: ${JSON.stringify({ because })}\n\n`)
  }

  return {
    async open(response, asked) {
      const person = asked.session.user.id
      const own = [...open.values()].filter((one) => one.person === person).length
      if (closing.signal.aborted || open.size >= mostStreams || own >= mostOfPerson) throw overloaded()
      response.writeHead(200, {
        'Content-Type': 'text/event-stream; charset=utf-8',
        'Cache-Control': 'no-store',
        // nginx would keep it.
        'X-Accel-Buffering': 'no',
      })
      const ended = serve(response, asked)
        .catch(() => void response.destroy())
        .finally(() => open.delete(response))
      open.set(response, { person, ended })
      await ended
    },
    async close() {
      closing.abort()
      await Promise.all([...open.values()].map(({ ended }) => ended))
    },
  }
}

const drained = (response: ServerResponse, signal: AbortSignal, stuck: () => void): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      response.off('drain', done).off('close', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(stuck, stuckMs).unref()
    response.on('drain', done).on('close', done)
    signal.addEventListener('abort', done)
  })
