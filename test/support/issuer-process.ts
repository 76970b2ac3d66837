import { type CodeFlow, createCodeFlow } from './code-flow.ts'
import type { PostgresConnection } from './database.ts'
import { basic, formOf, request } from './issuer.ts'
import { type SurrogateProcess, startSurrogateProcess, testClient } from './surrogate-process.ts'
import { until } from './until.ts'

/** An issuer as operators run it, on this port; resolves when it serves. Default `baseUrl`: where it listens. */
export const startIssuerProcess = async (
  connection: PostgresConnection,
  { port, baseUrl = `http://127.0.0.1:${port}` }: { port: number; baseUrl?: string },
): Promise<SurrogateProcess> => {
  const running = await startSurrogateProcess('issuer', connection, { PORT: String(port), BASE_URL: baseUrl })
  await until(async () => {
    const { body } = await running.readiness()
    if (!body.checks['start']?.ok) throw new Error(`It does not start: ${running.output()}`)
  })
  return running
}

/** The code flow at such processes; the first one's address is the base URL of all. */
export const createProcessFlow = (urls: readonly [string, ...string[]]): CodeFlow => {
  const [baseUrl] = urls
  const token: Parameters<typeof createCodeFlow>[0]['token'] = (asking, form, { instance = 0 } = {}) =>
    request(`${urls[instance]}/oidc/token`, {
      method: 'POST',
      headers: asking?.secret === undefined ? {} : { authorization: basic(asking) },
      body: formOf({ ...(asking && asking.secret === undefined && { client_id: asking.id }), ...form }),
    })
  return createCodeFlow({
    baseUrl,
    urls,
    issuer: `${baseUrl}/oidc`,
    token,
    async api(method, path, body) {
      const management = { grant_type: 'client_credentials', resource: `${baseUrl}/api`, scope: 'all' }
      const authorization = `Bearer ${(await token(testClient, management)).body.access_token}`
      const headers = { authorization, 'content-type': 'application/json' }
      return request(`${baseUrl}/api${path}`, { method, headers, body: JSON.stringify(body) })
    },
  })
}
