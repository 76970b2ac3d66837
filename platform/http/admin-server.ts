import type { Health } from '../health.ts'
import type { Inspection } from '../inspection.ts'
import type { Metrics } from '../metrics.ts'
import { listen, type RunningServer } from './http-server.ts'

/**
 * The operators' listener, never on the public port: `/livez` (the process runs), `/readyz` (it can serve; 503 when
 * not), `/metrics` (Prometheus), `/inspect` (what its parts tell of themselves, as JSON).
 */
export const startAdminServer = (options: {
  host: string
  port: number
  health: Health
  metrics: Metrics
  /** Default: 404. */
  inspection?: Inspection | undefined
}): Promise<RunningServer> =>
  listen({
    name: 'the admin listener',
    host: options.host,
    port: options.port,
    setting: 'ADMIN_PORT',
    handler: async (request, response) => {
      const send = (status: number, contentType: string, body: string) => {
        response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body)
      }
      if (request.method !== 'GET' && request.method !== 'HEAD') return send(405, 'text/plain', 'method not allowed\n')
      switch (request.url?.split('?')[0]) {
        case '/livez':
          return send(200, 'text/plain', 'ok\n')
        case '/readyz': {
          const { ok, checks } = await options.health.ready()
          return send(ok ? 200 : 503, 'application/json', `${JSON.stringify({ ok, checks })}\n`)
        }
        case '/metrics': {
          try {
            const { contentType, text } = await options.metrics.render()
            return send(200, contentType, text)
          } catch {
            return send(500, 'text/plain', 'metrics could not be collected\n')
          }
        }
        case '/inspect': {
          if (!options.inspection) return send(404, 'text/plain', 'not found\n')
          return send(200, 'application/json', `${JSON.stringify(await options.inspection.read())}\n`)
        }
        default:
          return send(404, 'text/plain', 'not found\n')
      }
    },
  })
