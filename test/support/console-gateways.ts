import type { Gateway } from '../../issuer/console/gateways/gateways.ts'
import { type BreakableLine, startBreakableLine } from './breakable-line.ts'
import type { Browser } from './browser.ts'
import { startTestConsole, type TestConsole } from './console.ts'
import { type EventStream, openEventStream } from './event-stream.ts'
import { freePort } from './free-port.ts'
import { startTestGateway, startUpstream, type TestGateway, type TestUpstream } from './gateway.ts'
import { type GatewayWorkers, startGatewayWorkers } from './gateway-workers.ts'
import type { TestIssuerOptions } from './issuer.ts'

/** A console with gateways that it asks, each over a line that can be broken. */
export interface ConsoleWithGateways {
  home: TestConsole
  /** What the console asks; a test may change it. */
  asked: Gateway[]
  audience: string
  /** Whose API resource is `orders`; its tokens are taken by all gateways. */
  addGateway(name: string): Promise<OneGateway>
  /** One of two worker processes, by the command line. */
  addWorkers(name: string): Promise<OneGateway & { workers: GatewayWorkers }>
  /** The page's stream. */
  stream(browser: Browser, query?: string, url?: string): Promise<EventStream>
  close(): Promise<void>
}

export interface OneGateway {
  name: string
  url: string
  line: BreakableLine
  /** Makes a decision: its request id. */
  decide(path?: string, token?: string): Promise<string>
}

export const orders = 'https://api.test/orders'

export const startConsoleWithGateways = async (options: TestIssuerOptions = {}): Promise<ConsoleWithGateways> => {
  const asked: Gateway[] = []
  const home = await startTestConsole({ consoleGateways: () => asked, ...options })
  const upstream: TestUpstream = await startUpstream()
  const { issuer, bootstrap } = home.issuer
  const audience = `${home.issuer.baseUrl}/inspection`
  const closers: (() => Promise<void>)[] = []

  const members = (inspectionPort: number) => ({
    inspection: { port: inspectionPort, audience, keep: '4MB' },
    issuers: [
      {
        issuer,
        clockSkew: '5s',
        client: { id: bootstrap.id, secret: bootstrap.secret },
        revocations: { mode: 'feed' },
      },
    ],
    upstreams: { orders: { url: upstream.url } },
    routes: [
      { id: 'orders', path: '/orders/**', audience: [orders], scopes: ['read:orders'], upstream: 'orders' },
      { id: 'public', path: '/public/**', auth: 'none', upstream: 'orders' },
    ],
    allowInsecure: ['http-issuer', 'http-upstream'],
  })

  const over = async (name: string, url: string, inspectionUrl: string): Promise<OneGateway> => {
    const line = await startBreakableLine(inspectionUrl)
    closers.push(line.close)
    asked.push({ name, url: line.url, audience })
    return {
      ...{ name, url, line },
      async decide(path = '/public/1', token) {
        const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
        const answer = await fetch(url + path, { headers })
        await answer.text()
        return answer.headers.get('x-request-id')!
      },
    }
  }

  return {
    home,
    asked,
    audience,
    async addGateway(name) {
      const gateway: TestGateway = await startTestGateway({ config: () => members(0) })
      closers.push(gateway.close)
      return over(name, gateway.url, gateway.inspectionUrl!)
    },
    async addWorkers(name) {
      const port = await freePort()
      const workers = await startGatewayWorkers(members(port))
      closers.push(workers.close)
      return { ...(await over(name, workers.url, `http://127.0.0.1:${port}`)), workers }
    },
    stream: (browser, query = '', url = home.issuer.baseUrl) =>
      openEventStream(`${url}/console/gateways/decisions/stream${query}`, {
        cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        'sec-fetch-site': 'same-origin',
      }),
    async close() {
      // Streams end first: a gateway that stops waits for them.
      await Promise.all(closers.reverse().map((close) => close()))
      await upstream.close()
      await home.close()
    },
  }
}
