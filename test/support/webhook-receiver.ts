import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  at: number
  url: string
  headers: IncomingHttpHeaders
  raw: Buffer
  body: {
    hookId: string
    id: string
    event: string
    version: number
    data: Record<string, unknown>
    [name: string]: unknown
  }
}

/** How the receiver answers; the default is 204. */
export type Answer = (received: Received, response: ServerResponse) => void

/** A real webhook receiver: keeps what arrives and answers as told. */
export const startWebhookReceiver = async (
  answer: Answer = (_received, response) => void response.writeHead(204).end(),
) => {
  const received: Received[] = []
  const watchers = new Set<() => void>()
  const current = { answer }
  let connections = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const raw = Buffer.concat(chunks)
      const entry = {
        at: Date.now(),
        url: request.url ?? '',
        headers: request.headers,
        raw,
        body: JSON.parse(raw.toString()),
      }
      received.push(entry)
      current.answer(entry, response)
      for (const watcher of watchers) watcher()
    })
  })
  server.on('connection', () => {
    connections += 1
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/webhooks`,
    port,
    received,
    get connections() {
      return connections
    },
    answerWith(next: Answer) {
      current.answer = next
    },
    /** Resolves once `condition` holds of what has arrived; the test's time limit ends the wait. */
    until: (condition: (received: readonly Received[]) => boolean): Promise<void> =>
      new Promise((resolve) => {
        const check = () => {
          if (!condition(received)) return
          watchers.delete(check)
          resolve()
        }
        watchers.add(check)
        check()
      }),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>

/** Takes so many ms for each answer, and counts how many requests were under way at the same time, at most. */
export const slowAnswer = (ms: number) => {
  let underWay = 0
  let most = 0
  const answer: Answer = (_received, response) => {
    underWay += 1
    most = Math.max(most, underWay)
    setTimeout(() => {
      underWay -= 1
      response.writeHead(204).end()
    }, ms)
  }
  return {
    answer,
    get most() {
      return most
    },
  }
}
