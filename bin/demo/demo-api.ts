import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { listen, type RunningServer } from '../../platform/http/http-server.ts'
import { readWhole } from '../../platform/http/read-whole.ts'
import { verifyWebhook } from './webhook-verification.ts'

/** A webhook that arrived, newest first in the list that `GET /webhooks` answers with. */
export interface ReceivedWebhook {
  receivedAt: string
  /** The signature matches the hook's secret. Nothing else is kept of one that does not. */
  verified: boolean
  headers: Record<string, string>
  payload: unknown
}

export interface DemoApi extends RunningServer {
  /** The secret to verify webhooks with; known once the hook exists. */
  trustWebhooks(secret: string): void
}

const kept = 50
const maxBodyBytes = 1_000_000

const orders = [
  { id: '41', item: 'Espresso machine', total: 489 },
  { id: '42', item: 'Coffee grinder', total: 129 },
]

/**
 * The API behind the demo's gateway. It trusts the gateway and only shows what the gateway tells it about the caller;
 * it also plays the receiver of the demo's webhook. State is in memory: it is a demonstration.
 */
export const startDemoApi = async (options: { host: string; port: number }): Promise<DemoApi> => {
  const webhooks: ReceivedWebhook[] = []
  let secret: string | undefined

  const receiveWebhook = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await readBody(request)
    const verified = secret !== undefined && verifyWebhook(secret, request.headers, body)
    webhooks.unshift({
      receivedAt: new Date().toISOString(),
      verified,
      headers: verified ? pick(request, /^(webhook-|content-type$|user-agent$|logto-signature)/) : {},
      payload: verified ? JSON.parse(body.toString()) : null,
    })
    webhooks.length = Math.min(webhooks.length, kept)
    response.writeHead(verified ? 204 : 401).end()
  }

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url ?? '/', 'http://demo')
    const operation = `${request.method} ${pathname.replace(/^\/orders\/[^/]+/, '/orders/:id')}`
    const received = { method: request.method, path: request.url, headers: pick(request, /^x-(auth-|request-id)/) }
    switch (operation) {
      case 'GET /orders':
        return json(response, 200, { orders, received })
      case 'GET /orders/:id': {
        const order = orders.find(({ id }) => id === pathname.split('/')[2])
        return order
          ? json(response, 200, { order, received })
          : json(response, 404, { error: 'no such order', received })
      }
      case 'POST /orders':
        return json(response, 201, { order: parseJson(await readBody(request)), received })
      case 'POST /orders/:id/refund':
        return json(response, 200, { refunded: pathname.split('/')[2], received })
      case 'GET /clock':
        return json(response, 200, { now: new Date().toISOString(), received })
      case 'POST /webhooks':
        return receiveWebhook(request, response)
      case 'GET /webhooks':
        return json(response, 200, { webhooks })
      default:
        return json(response, 404, { error: 'the demo API has no such operation', received })
    }
  }

  const handler: RequestListener = (request, response) => {
    handle(request, response).catch(() => {
      if (!response.headersSent) response.writeHead(400)
      response.end()
    })
  }
  const server = await listen({ name: 'the demo API', setting: 'DEMO_PORT', handler, ...options })
  return {
    ...server,
    trustWebhooks: (value) => {
      secret = value
    },
  }
}

const json = (response: ServerResponse, status: number, body: unknown) => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body, null, 2)}\n`)
}

const pick = (request: IncomingMessage, names: RegExp): Record<string, string> =>
  Object.fromEntries(
    Object.entries(request.headers).flatMap(([name, value]) =>
      names.test(name) && value !== undefined ? [[name, String(value)]] : [],
    ),
  )

const readBody = (request: IncomingMessage): Promise<Buffer> =>
  readWhole(request, maxBodyBytes, () => new Error('The body is too large.'))

const parseJson = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString())
  } catch {
    return body.toString()
  }
}
