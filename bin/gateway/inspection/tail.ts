import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { type DecisionRecord, streamEvents } from '../../../gateway/inspection/decision-answers.ts'
import { createBackOff } from '../../../platform/back-off.ts'
import { StartupError } from '../../../platform/startup-error.ts'
import type { AccessToken } from './access-token.ts'
import type { InspectionClient } from './client.ts'

/** Of an event of the stream, in characters: four times the largest record. */
const largestEvent = 2_097_152

interface StreamEvent {
  name: string
  data: string
}

/** Server-sent events (HTML, §9.2.6), as far as our gateway uses them. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  let waiting = ''
  for await (const text of body.pipeThrough(new TextDecoderStream() as never) as unknown as AsyncIterable<string>) {
    waiting += text
    const blocks = waiting.split('\n\n')
    waiting = blocks.pop()!
    if (waiting.length > largestEvent) throw new Error('an event of the stream is too long')
    for (const block of blocks) {
      const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line))
      const value = (name: string) => fields.find((field) => field?.[1] === name)?.[2]
      const [name, data] = [value('event'), value('data')]
      if (name !== undefined && data !== undefined) yield { name, data }
    }
  }
}

export interface TailOptions {
  client: InspectionClient
  token: AccessToken
  filter: Record<string, string | undefined>
  onDecision: (record: DecisionRecord) => void
  /** Sentences about the stream itself. */
  say: (text: string) => void
  signal: AbortSignal
}

/**
 * Follows the decisions until `signal`; a gateway that goes away is waited for, and a token that has expired is asked
 * for again. Resolves with how many decisions were lost. Throws `StartupError` when the first connection fails, or a
 * token is refused for good.
 */
export const tailDecisions = async ({
  client,
  token,
  filter,
  onDecision,
  say,
  signal,
}: TailOptions): Promise<number> => {
  const backOff = createBackOff({ first: 200, longest: 5_000, jitter: 0.2 })
  let lost = 0
  let connected = false
  let away = false
  let refusals = 0
  while (!signal.aborted) {
    let because: EndReason = 'closing'
    try {
      const body = await client.open('stream', { query: filter, signal })
      if (away) say('The stream goes on; decisions of the meantime are missing here.')
      connected = true
      away = false
      refusals = 0
      backOff.reset()
      for await (const { name, data } of readEvents(body)) {
        const value: unknown = JSON.parse(data)
        if (name === 'decision') onDecision(streamEvents.decision.parse(value))
        if (name === 'end') because = streamEvents.end.parse(value).because
        if (name !== 'lost') continue
        const count = streamEvents.lost.parse(value).lost
        lost += count
        say(`${count} decisions are missing here: they came too fast.`)
      }
    } catch (error) {
      if (signal.aborted) break
      if (error instanceof z.ZodError || error instanceof SyntaxError) throw notOurs(client.url, error)
      const isRefusal = error instanceof StartupError && error.exitCode === 2
      if (!connected || (isRefusal && ++refusals > mostRefusals)) throw error
    }
    if (signal.aborted) break
    if (because !== 'closing' && !token.renewable)
      throw new StartupError(`The gateway at ${client.url} ended the stream: the token is ${because}.`, {
        hint: 'Get another token.',
      })
    if (!away) say(because === 'closing' ? 'The gateway went away; trying again.' : 'The token ended; getting another.')
    away = true
    await sleep(backOff.next(), undefined, { signal }).catch(() => {})
  }
  return lost
}

type EndReason = z.output<typeof streamEvents.end>['because']

/** Of the token after a restart, in a row: a rotated one may not be in its file yet. */
const mostRefusals = 1

const notOurs = (url: string, cause: Error): StartupError =>
  new StartupError(`What ${url} streams is nothing of this version.`, {
    hint: 'Update this command.',
    exitCode: 3,
    cause,
  })
