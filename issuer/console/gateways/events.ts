import { z } from 'zod'
import { GatewayTrouble } from './gateways.ts'

/** What a gateway's stream tells, as far as it is read here; decisions are handed on with all that they have. */
const events = {
  decision: z.looseObject({ decision_id: z.string().min(1).max(512), timestamp: z.string().max(64) }),
  lost: z.object({ lost: z.number().int().min(1) }),
  end: z.object({ because: z.enum(['expired', 'revoked', 'refused', 'closing']) }),
}

export type GatewayEvent = {
  [Name in keyof typeof events]: { name: Name; data: z.output<(typeof events)[Name]> }
}[keyof typeof events]

/** Of one event, in characters: a decision has at most half a megabyte. */
const longest = 1_048_576

/** Reads server-sent events (HTML, §9.2), as gateways write them. Throws `GatewayTrouble`. */
export const readEvents = async function* (body: AsyncIterable<Uint8Array>): AsyncGenerator<GatewayEvent> {
  const decoder = new TextDecoder()
  let parts: string[] = []
  let size = 0
  for await (const chunk of body) {
    const pieces = decoder.decode(chunk, { stream: true }).split('\n\n')
    // An end may be cut in two.
    if (parts.at(-1)?.endsWith('\n') && pieces[0]!.startsWith('\n')) {
      yield* eventsOf(parts.join(''))
      parts = []
      size = 0
      pieces[0] = pieces[0]!.slice(1)
    }
    for (const [index, piece] of pieces.entries()) {
      size += piece.length
      if (size > longest) throw new GatewayTrouble('refuses', 'An event of its stream is too large.')
      if (piece !== '') parts.push(piece)
      if (index === pieces.length - 1) break
      yield* eventsOf(parts.join(''))
      parts = []
      size = 0
    }
  }
}

const eventsOf = (block: string): GatewayEvent[] => {
  const fields = new Map(
    block.split('\n').map((line) => (/^(\w*): ?(.*)$/s.exec(line)?.slice(1) as [string, string]) ?? ['', '']),
  )
  const name = fields.get('event')
  // A comment, or what a later version tells besides.
  if (name === undefined || !Object.hasOwn(events, name)) return []
  try {
    const data = events[name as keyof typeof events].parse(JSON.parse(fields.get('data') ?? ''))
    return [{ name, data } as GatewayEvent]
  } catch (cause) {
    throw new GatewayTrouble('refuses', 'Its stream is not that of a gateway.', { cause })
  }
}
