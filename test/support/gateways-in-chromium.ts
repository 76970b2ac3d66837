import { readFile } from 'node:fs/promises'
import type { Gateway } from '../../issuer/console/gateways/gateways.ts'
import { type BreakableLine, startBreakableLine } from './breakable-line.ts'
import { type ConsoleInChromium, startConsoleInChromium } from './console-in-chromium.ts'
import { freePort } from './free-port.ts'
import { startTestGateway, type TestGateway } from './gateway.ts'
import { writeRules } from './rules.ts'

/** The console in a real browser with gateways that it asks, each over a line that can be broken. */
export interface GatewaysInChromium {
  app: ConsoleInChromium
  /** Between browser and console. */
  line: BreakableLine
  gateways: Readonly<Record<string, GatewayInChromium>>
  /** Where the gateways' rules are. */
  rules: string
  close(): Promise<void>
}

export interface GatewayInChromium extends TestGateway {
  line: BreakableLine
  /** Makes a request: its id. */
  ask(path: string, options?: Parameters<TestGateway['call']>[1] & { claims?: object }): Promise<string>
}

/** Refunds are the boss's, and a claim decides that nobody may see. */
const refunds = `package surrogate.gateway

deny contains {"reason": "not_the_boss", "detail": "Refunds are for the boss."} if {
	input.route.id == "refund"
	input.subject.id != "boss"
}
`

/** What masks take out of every record; a page that shows it has it from elsewhere. */
export const secretClaim = 'iron-plan-of-the-customer'

/** Gateways with these names. */
export const startGatewaysInChromium = async (...names: string[]): Promise<GatewaysInChromium> => {
  const asked: Gateway[] = []
  const port = await freePort()
  const line = await startBreakableLine(`http://127.0.0.1:${port}`)
  const ownUrl = `http://localhost:${new URL(line.url).port}`
  const config = { port, baseUrl: ownUrl }
  const app = await startConsoleInChromium({ consoleGateways: () => asked, config })
  const { issuer, baseUrl } = app.home.issuer
  const audience = `${baseUrl}/inspection`
  const shipped = await readFile(new URL('../../policies/gateway/decision.rego', import.meta.url), 'utf8')
  const rules = await writeRules({ 'decision.rego': shipped, 'refunds.rego': refunds })
  const gateways: Record<string, GatewayInChromium> = {}
  for (const name of names) {
    const gateway = await startTestGateway({
      config: (parts) => {
        const own = {
          audience: ['https://api.test/orders'],
          issuers: [parts.issuer.issuer],
          upstream: 'orders',
        }
        return {
          inspection: { port: 0, audience, issuers: [issuer], keep: '4MB' },
          issuers: [{ issuer: parts.issuer.issuer }, { issuer }],
          policies: { path: rules.folder },
          decisionLog: { to: '/dev/null', mask: ['/input/token/claims/plan', '/input/request/query/card'] },
          routes: [
            { ...own, id: 'read', path: '/orders/{id}', methods: ['GET'], scopes: ['read:orders'] },
            { ...own, id: 'write', path: '/orders/{id}', methods: ['POST'], scopes: ['write:orders'] },
            { ...own, id: 'refund', path: '/orders/{id}/refund', methods: ['POST'] },
            { id: 'public', path: '/public/**', auth: 'none', upstream: 'orders' },
          ],
        }
      },
    })
    const inspection = await startBreakableLine(gateway.inspectionUrl!)
    asked.push({ name, url: inspection.url, audience })
    gateways[name] = Object.assign(gateway, {
      line: inspection,
      async ask(path: string, { claims, ...options }: Parameters<GatewayInChromium['ask']>[1] = {}) {
        const token = await gateway.issuer.sign({
          scope: 'read:orders',
          client_id: 'shop',
          plan: secretClaim,
          ...claims,
        })
        const answer = await gateway.call(path, { token, ...options })
        await answer.text()
        return answer.headers.get('x-request-id')!
      },
    })
  }
  return {
    app,
    line,
    gateways,
    rules: rules.folder,
    async close() {
      await app.close()
      await line.close()
      for (const { line: inspection, close } of Object.values(gateways)) {
        await inspection.close()
        await close()
      }
      await rules.remove()
    },
  }
}
