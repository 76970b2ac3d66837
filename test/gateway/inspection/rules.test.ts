import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'
import { createTlsFiles } from '../../support/tls-listener.ts'

const header = 'package surrogate.gateway\n\n# METADATA\n# entrypoint: true\n'

const start = async (rules: Record<string, string>, policies: object = {}, inspection: object = {}) => {
  const folder = await mkdtemp(join(tmpdir(), 'inspection-rules-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(rules)) {
    await mkdir(join(folder, name))
    await writeFile(join(folder, name, 'rules.rego'), header + text)
  }
  const gateway = await startTestGateway({
    config: () => ({
      inspection: { port: 0, audience: inspectionAudience, ...inspection },
      policies: {
        path: join(folder, 'live'),
        ...policies,
        ...('shadow' in rules && { shadow: join(folder, 'shadow') }),
      },
    }),
  })
  onTestFinished(() => gateway.close())
  return { gateway, client: inspectionClient(() => gateway.inspectionUrl!, gateway.issuer) }
}

test('differences of shadow policies are told, newest first', async () => {
  const shadow = 'decision := {"allow": input.request.path != "/orders/2", "reason": "second"}'
  const { gateway, client } = await start({ live: 'decision := {"allow": true}', shadow })
  expect(await client.get('shadow')).toEqual({ configured: true, differences: [] })
  await expect
    .poll(async () => {
      for (const path of ['/orders/1', '/orders/2']) await gateway.call(path)
      return (await client.get('shadow')).differences[0]
    })
    .toMatchObject({
      route: 'orders-read',
      entrypoint: 'surrogate/gateway/decision',
      differs: ['allow', 'reason'],
      live: { allow: true },
      shadow: { allow: false, reason: 'second' },
    })
})

test('rules that run away end by their units, and hold up no request of the gateway', async () => {
  const rules = `
decision := {"allow": true} if input.request.path != "/forever"

decision := {"allow": false} if {
  input.request.path == "/forever"
  some a in numbers.range(1, 3000)
  some b in numbers.range(1, 3000)
  a * b < 0
}
`
  const { gateway, client } = await start({ live: rules }, { units: 15_000_000 })
  const asked = Array.from({ length: 30 }, () => client.post('/evaluate', { input: { request: { path: '/forever' } } }))
  let answered = 0
  const all = Promise.all(asked.map((one) => one.finally(() => answered++)))
  const before = await gateway.call('/orders/1')
  expect([before.status, answered < asked.length]).toEqual([200, true])
  const answers = await all
  const statuses = answers.map(({ status }) => status)
  // One runs and sixteen wait.
  expect(statuses.filter((status) => status === 503).length).toBeGreaterThanOrEqual(13)
  expect(answers.find(({ status }) => status === 200)?.body).toMatchObject({
    error: expect.stringContaining('units'),
    units: expect.any(Number),
  })
  expect(await client.post('/evaluate', { input: { request: { path: '/x' } } })).toMatchObject({
    body: { result: { allow: true } },
  })
})

test('the listener speaks TLS', async () => {
  const files = createTlsFiles()
  onTestFinished(files.remove)
  const certificates = [files.pair('localhost')]
  const { client, gateway } = await start({ live: 'decision := {"allow": true}' }, {}, { tls: { certificates } })
  expect(gateway.inspectionUrl).toMatch(/^https:/)
  const agent = new Agent({ ca: files.authority.certificate, servername: 'localhost' })
  const headers = { authorization: `Bearer ${await client.token()}` }
  const status = await new Promise((resolve, reject) => {
    request(`${gateway.inspectionUrl}/routes`, { agent, headers }, (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end()
  })
  agent.destroy()
  expect(status).toBe(200)
})
