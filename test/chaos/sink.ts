import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Random } from './random.ts'

/** What a receiver took: once for each answer of success, and when it took it but its answer was lost. */
export interface Taken {
  hook: string
  eventId: string
  entity: string
  version: number
}

/**
 * A receiver as receivers are: some answers are 500 (it took nothing), some are lost after it took what came, some are
 * late. Keeps what it took, in order.
 */
export const startSink = async (random: Random) => {
  const taken: Taken[] = []
  const answered = { refused: 0, lost: 0, late: 0 }

  const take = (path: string, body: { id: string; event: string; version: number; params: Record<string, string> }) => {
    const entity = `${body.event.split('.')[0]} ${Object.values(body.params)[0] ?? body.id}`
    taken.push({ hook: path.slice(1), eventId: body.id, entity, version: body.version })
  }
  const answer = (response: ServerResponse, path: string, text: string) => {
    const chance = random.next()
    if (chance < 0.03) {
      answered.refused += 1
      return void response.writeHead(500).end()
    }
    take(path, JSON.parse(text))
    if (chance < 0.04) {
      answered.lost += 1
      return void response.destroy()
    }
    if (chance < 0.06) {
      answered.late += 1
      return void setTimeout(() => response.writeHead(204).end(), 200)
    }
    response.writeHead(204).end()
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    // A request that broke off was not taken.
    request.on('end', () => answer(response, request.url ?? '/', Buffer.concat(chunks).toString()))
    request.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    taken,
    answered,
    urlOf: (hook: string) => `http://127.0.0.1:${port}/${hook}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
