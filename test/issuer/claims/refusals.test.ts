import { expect, onTestFinished, test } from 'vitest'
import { putClaimsScript } from '../../support/claims-script.ts'
import { type Answer, basic, formOf, request, startTestIssuer } from '../../support/issuer.ts'
import { loudLines } from '../../support/log-lines.ts'
import { until } from '../../support/until.ts'

test('a client whose calls are refused because too many of its own are waiting does not fill the log', async () => {
  const issuer = await startTestIssuer({
    config: { claims: { workers: 1, fetch: { hosts: [], allowedNetworks: [], allowHttp: false } } },
  })
  onTestFinished(() => issuer.close())
  const resource = await issuer.createResource({ scopes: ['read:orders'] })
  const client = await issuer.createMachine(resource, ['read:orders'])
  await putClaimsScript(issuer, 'for (;;);', { kind: 'client-credentials' })
  const grant = { grant_type: 'client_credentials', resource, scope: 'read:orders' }
  // From then on it is served apart: one call after the other, with rests, and few may wait.
  expect(await issuer.token(client, grant)).toMatchObject({ status: 400, body: { reason: 'custom_claims_failed' } })

  const refused: Answer[] = []
  const leaving = new AbortController()
  const started = performance.now()
  const asked = Array.from({ length: 100 }, async () => {
    const headers = { authorization: basic(client) }
    const init = { method: 'POST', headers, body: formOf(grant), signal: leaving.signal }
    const answer = await request(`${issuer.url}/oidc/token`, init)
    if (answer.status === 503) refused.push(answer)
  })
  await until(() => expect(refused.length).toBeGreaterThanOrEqual(60))
  leaving.abort()
  await Promise.allSettled(asked)
  for (const { body } of refused)
    expect(body).toMatchObject({ error: 'temporarily_unavailable', reason: 'custom_claims_unavailable' })
  const seconds = Math.ceil((performance.now() - started) / 1_000)
  const lines = loudLines(issuer.logged())
  expect(lines.filter(({ err }) => err)).toHaveLength(0)
  // One a second for each kind of failure, and one that says that it is served apart.
  expect(lines.length).toBeLessThanOrEqual(3 + 2 * seconds)
})
