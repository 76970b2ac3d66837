import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** What a browser sent. */
export interface Received {
  method: string
  /** With the query. */
  path: string
  headers: Record<string, string | string[] | undefined>
  body: string
}

export interface WebsiteAnswer {
  status?: number
  headers?: Record<string, string>
  body?: string | Buffer
}

export interface Website {
  /** Its origin. */
  url: string
  /** In the order of arrival. */
  received: Received[]
  close(): Promise<void>
}

/**
 * A site of somebody else. Issuers of tests are at `localhost`, so it is another site than theirs, not only another
 * origin, and browsers treat cookies as between strangers.
 */
export const startWebsite = async (
  answer: (request: Received) => WebsiteAnswer | Promise<WebsiteAnswer>,
): Promise<Website> => {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const respond = async () => {
      const { method = '', url: path = '', headers } = request
      const asked = { method, path, headers, body: await text(request) }
      received.push(asked)
      const { status = 200, headers: own = {}, body = '' } = await answer(asked)
      response.writeHead(status, { 'Content-Type': 'text/html; charset=utf-8', ...own }).end(body)
    }
    respond().catch((error) => response.writeHead(500).end(String(error)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
