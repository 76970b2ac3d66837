import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'

export interface ReceivedBatch {
  events: Record<string, unknown>[]
  headers: IncomingMessage['headers']
}

export interface LogCollector {
  readonly url: string
  /** Every POST that came, the refused ones too. */
  readonly received: ReceivedBatch[]
  /** Events of POSTs that were answered with 200, in order. */
  readonly taken: Record<string, unknown>[]
  /** What is answered from now on; `hang`: nothing. */
  answer: (batch: ReceivedBatch) => { status: number; headers?: Record<string, string> } | 'hang'
  close(): Promise<void>
}

/** What log events are uploaded to: takes gzipped arrays of JSON. */
export const startLogCollector = async (): Promise<LogCollector> => {
  const self: Omit<LogCollector, 'url'> = {
    received: [],
    taken: [],
    answer: () => ({ status: 200 }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const events = JSON.parse(gunzipSync(Buffer.concat(chunks)).toString())
    const batch = { events, headers: request.headers }
    self.received.push(batch)
    const answer = self.answer(batch)
    if (answer === 'hang') return
    if (answer.status === 200) self.taken.push(...events)
    response.writeHead(answer.status, answer.headers).end()
  }
  const server = createServer((request, response) => void take(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(self, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/logs` })
}
