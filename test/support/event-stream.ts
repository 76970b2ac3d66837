import { get, type IncomingMessage } from 'node:http'

/** A reader of server-sent events, as far as the issuer sends them. */
export interface ReceivedEvent {
  id: string | undefined
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it
  data: any
}

export interface EventStream {
  status: number
  headers: IncomingMessage['headers']
  /** What has come so far. */
  events: ReceivedEvent[]
  /** Comments so far. */
  heartbeats(): number
  /** Resolves with the first event that fits, of those that came or will come. Rejects when the stream ends before. */
  until(fits: (event: ReceivedEvent) => boolean): Promise<ReceivedEvent>
  /** Resolves when the other side has ended it. */
  ended: Promise<void>
  close(): void
}

const parse = (block: string): ReceivedEvent | undefined => {
  const fields = new Map(
    block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.replace(/^\w*: ?/, '')]),
  )
  const event = fields.get('event')
  return event === undefined ? undefined : { id: fields.get('id'), event, data: JSON.parse(fields.get('data') ?? '') }
}

/** A connection of its own: `fetch` would open another one when this one is given up. */
export const openEventStream = async (url: string, headers: Record<string, string>): Promise<EventStream> => {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers, agent: false }, resolve).on('error', reject)
  })
  const events: ReceivedEvent[] = []
  const watchers = new Set<() => void>()
  let heartbeats = 0
  let isOver = false

  const read = async () => {
    let text = ''
    try {
      for await (const chunk of response.setEncoding('utf8')) {
        text += chunk
        const blocks = text.split('\n\n')
        text = blocks.pop()!
        for (const block of blocks) {
          const event = parse(block)
          if (event) events.push(event)
          else heartbeats += 1
        }
        for (const watcher of watchers) watcher()
      }
    } catch {
      // Broken off is over too.
    } finally {
      isOver = true
      for (const watcher of watchers) watcher()
    }
  }

  return {
    status: response.statusCode!,
    headers: response.headers,
    events,
    heartbeats: () => heartbeats,
    until: (fits) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = events.find(fits)
          if (found === undefined && !isOver) return
          watchers.delete(look)
          if (found) resolve(found)
          else reject(new Error(`The stream ended after ${JSON.stringify(events)}.`))
        }
        watchers.add(look)
        look()
      }),
    ended: read(),
    close: () => response.destroy(),
  }
}
