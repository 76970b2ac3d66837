import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'
import { writeRules } from '../../support/rules.ts'

/** What masks take out of a decision, and what rules read beside the input, is told nowhere else. */

const rego = `package masks

# METADATA
# entrypoint: true
decision := {"allow": false, "reason": reason, "detail": detail, "headers": {}} if {
	some tenant, key in data.keys
	input.request.path == "/masked"
	subject := input.subject.id
	detail := sprintf("%s has %s", [subject, key])
	reason := sprintf("of_%s", [tenant])
	parts := {"subject": subject, tenant: [key]}
	count(parts) == 2
}
`

let gateway: TestGateway
let client: ReturnType<typeof inspectionClient>
let rules: Awaited<ReturnType<typeof writeRules>>

beforeAll(async () => {
  rules = await writeRules({ 'masks.rego': rego, 'data.json': JSON.stringify({ keys: { secretone: 'SECRET-key' } }) })
  gateway = await startTestGateway({
    config: () => ({
      inspection: { port: 0, audience: inspectionAudience },
      policies: { path: rules.folder },
      decisionLog: { to: '/dev/null', mask: ['/result/reason', { path: '/result/detail', value: 'gone' }] },
      routes: [
        {
          ...{ id: 'masked', path: '/masked', audience: ['https://api.test/orders'], upstream: 'orders' },
          entrypoint: 'masks/decision',
        },
      ],
    }),
  })
  client = inspectionClient(() => gateway.inspectionUrl!, gateway.issuer)
})
afterAll(async () => {
  await gateway?.close()
  await rules?.remove()
})

test('by why, its rules and their variables', async () => {
  const answer = await gateway.call('/masked', { token: await gateway.issuer.sign({}) })
  expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('SECRET-key')])
  const why = await client.get('why', `/decisions/${answer.headers.get('x-request-id')}/why`)
  expect(why.rules).toMatchObject([
    {
      name: 'decision',
      held: true,
      variables: {
        subject: 'u1',
        tenant: '[redacted]',
        key: '[redacted]',
        reason: '[redacted]',
        parts: { subject: 'u1', '[redacted]': ['[redacted]'] },
      },
    },
  ])
  expect(JSON.stringify(why)).not.toMatch(/SECRET|secretone/)
})

test('by an evaluation', async () => {
  const input = { request: { path: '/masked' }, subject: { id: 'u1' } }
  const { status, body } = await client.post('/evaluate', { entrypoint: 'masks/decision', input })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    result: { allow: false, detail: 'gone' },
    erased: ['/result/reason'],
    masked: ['/result/detail'],
  })
  expect(JSON.stringify(body)).not.toMatch(/SECRET|secretone/)
})
