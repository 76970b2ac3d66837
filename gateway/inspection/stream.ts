import type { ServerResponse } from 'node:http'
import { problem } from '../refusals/problems.ts'
import type { DecisionFilter } from './decision-answers.ts'
import type { Decisions } from './decision-ring.ts'

/** `GET /decisions/stream`: decisions as they are made, as server-sent events (HTML, §9.2). */
export interface Streams {
  /**
   * Begins to answer, with what is kept `since` then. `endOf` tells why the reader may not read on. Throws `AppError`
   * 503 when there are `mostStreams`.
   */
  open(
    response: ServerResponse,
    asked: DecisionFilter & { since?: string | undefined },
    endOf: () => Promise<EndReason | undefined>,
  ): void
  /** Asks for all of them whether they may go on. */
  check(): void
  /** That are open. */
  readonly count: number
  close(): void
}

export type EndReason = 'expired' | 'revoked' | 'refused' | 'closing'

interface Stream {
  endOf: () => Promise<EndReason | undefined>
  end(because: EndReason): void
}

const mostStreams = 16
/** What may wait for a reader; beyond it events are lost to it. In bytes. */
const mostWaiting = 1_048_576
/** Of what was kept, for one reader, in bytes: it waits beside that, and none of it is lost. */
const mostReplayed = 8_388_608
/** How often tokens are checked. In ms. */
const checkEveryMs = 1_000
/** Silence after which a comment keeps proxies from ending the connection. In ms. */
const silenceMs = 15_000

/** For a reader to take what waits for it at the end. In ms. */
const lastChanceMs = 2_000

export const createStreams = ({ decisions }: { decisions: Decisions }): Streams => {
  const all = new Set<Stream>()
  let timer: NodeJS.Timeout | undefined

  const check = () => {
    for (const stream of all) {
      void stream.endOf().then(
        (because) => because && stream.end(because),
        () => stream.end('refused'),
      )
    }
  }

  return {
    open(response, { since, ...filter }, endOf) {
      if (all.size >= mostStreams) throw problem('server.unavailable', { headers: { 'retry-after': '5' } })
      let lost = 0
      let lastWritten = performance.now()
      /** What was kept, and what was made before all of that was written. */
      let waiting: Uint8Array[] = []
      /** Of those that were made. */
      let waitingBytes = 0
      const write = (text: string | Uint8Array) => {
        lastWritten = performance.now()
        response.write(text)
      }
      const event = (name: string, data: unknown) => write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
      // JSON has no line ends of its own.
      const tell = (record: Uint8Array) => write(Buffer.concat([beginning, record, ending]))
      const tellLost = () => {
        if (lost === 0 || waiting.length > 0 || response.writableLength > mostWaiting / 2) return
        event('lost', { lost })
        lost = 0
      }
      const tellWaiting = () => {
        let told = 0
        while (told < waiting.length && response.writableLength <= mostWaiting / 2) tell(waiting[told++]!)
        waiting = told < waiting.length ? waiting.slice(told) : []
        if (waiting.length === 0) waitingBytes = 0
        tellLost()
      }
      const unfollow = decisions.follow(
        filter,
        {
          decisions(records, old) {
            for (const record of records) {
              tellLost()
              if (old) waiting.push(record)
              // Whoever has lost some is told so before the next one.
              else if (lost > 0 || response.writableLength + waitingBytes + record.length > mostWaiting) lost++
              else if (waiting.length === 0) tell(record)
              else {
                waiting.push(record)
                waitingBytes += record.length
              }
            }
            tellWaiting()
          },
          lost(count) {
            lost += count
            tellLost()
          },
        },
        since === undefined ? undefined : { since: Date.parse(since), most: mostReplayed },
      )
      response.on('drain', tellWaiting)
      const keepAlive = setInterval(() => {
        if (performance.now() - lastWritten >= silenceMs && response.writableLength === 0) write(':\n\n')
      }, silenceMs / 3).unref()
      const stream: Stream = {
        endOf,
        end(because) {
          if (!all.delete(stream)) return
          event('end', { because })
          response.end()
          // One that does not read does not keep its connection.
          setTimeout(() => response.destroy(), lastChanceMs).unref()
          leave()
        },
      }
      const leave = () => {
        all.delete(stream)
        unfollow()
        clearInterval(keepAlive)
        if (all.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
      response.on('close', leave)
      all.add(stream)
      timer ??= setInterval(check, checkEveryMs).unref()
      response.flushHeaders()
    },
    check,
    get count() {
      return all.size
    },
    close() {
      for (const stream of [...all]) stream.end('closing')
    },
  }
}

const beginning = Buffer.from('event: decision\ndata: ')
const ending = Buffer.from('\n\n')
