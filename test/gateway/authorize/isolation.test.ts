import { expect, onTestFinished, test } from 'vitest'
import { startAdminServer } from '../../../platform/http/admin-server.ts'
import { ruleFolder, writeFiles } from '../../policies/rule-folder.ts'
import { capturedLogger } from '../../support/captured-logger.ts'
import { orders, startTestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

/** Never returns for some callers: OPA's `contains` compares every place of one long text with another. */
const rules = `package test

# METADATA
# entrypoint: true
decision := {"allow": contains(text, part)} if {
	text := concat("", [input.route.context.many | some _ in numbers.range(1, input.route.context.times)])
	part := concat("", [substring(text, 0, 300000), "b"])
}

# METADATA
# entrypoint: true
quick := {"allow": input.token.scopes != [], "headers": {"x-plan": "gold"}}
`

const rule = (value: string) => `package test\n\n# METADATA\n# entrypoint: true\ndecision := ${value}\n`

const start = async (options: { policies: Record<string, unknown>; routes: object[] }) => {
  const { logger, lines } = capturedLogger()
  const gateway = await startTestGateway({
    logger,
    config: ({ upstream }) => ({
      policies: options.policies,
      upstreams: { orders: { url: upstream.url } },
      routes: options.routes.map((route) => ({ audience: [orders], upstream: 'orders', ...route })),
    }),
  })
  onTestFinished(gateway.close)
  const metric = async (line: string) =>
    (await gateway.metrics.render()).text.split('\n').find((text) => text.startsWith(line))
  return { ...gateway, lines, metric }
}

test('a route whose rules run away refuses, another one is served meanwhile, and the deadline is logged and counted', async () => {
  const path = await ruleFolder({ 'test.rego': rules })
  const gateway = await start({
    policies: { path, isolation: { workers: 2, deadline: '400ms' } },
    routes: [
      {
        id: 'slow',
        path: '/slow',
        entrypoint: 'test/decision',
        isolation: 'worker',
        context: { many: 'a'.repeat(500), times: 2000 },
      },
      { id: 'quick', path: '/quick', entrypoint: 'test/quick', isolation: 'worker' },
      { id: 'main', path: '/main', entrypoint: 'test/quick' },
    ],
  })
  const away = gateway.call('/slow')
  for (const route of ['/quick', '/main', '/quick', '/main']) expect((await gateway.call(route)).status).toBe(200)
  expect(gateway.upstream.seen[0]!.headers).toMatchObject({ 'x-plan': 'gold' })

  const refused = await away
  expect(refused.status).toBe(403)
  expect(await refused.json()).toMatchObject({ code: 'policy_error', reason: 'policy_error' })
  expect(await gateway.metric('surrogate_gateway_policy_deadlines_total')).toContain('{entrypoint="test/decision"} 1')
  expect(gateway.lines.map(({ msg }) => msg)).toContain('an isolated policy missed its deadline')
  expect((await gateway.call('/quick')).status).toBe(200)
})

test('rules that run away on the thread of the requests are ended, told and counted, and it goes on', async () => {
  const away = `package test

# METADATA
# entrypoint: true
away if {
	some a in input.route.context.list
	some b in input.route.context.list
	some c in input.route.context.list
	a + b + c == -1
}
`
  const path = await ruleFolder({ 'test.rego': rules, 'away.rego': away })
  const list = Array.from({ length: 300 }, (_, n) => n)
  const gateway = await start({
    policies: { path, units: 1_000_000, isolation: { deadline: '10s' } },
    routes: [
      { id: 'away', path: '/away', entrypoint: 'test/away', context: { list } },
      { id: 'isolated', path: '/isolated', entrypoint: 'test/quick', isolation: 'worker' },
      { id: 'quick', path: '/quick', entrypoint: 'test/quick' },
    ],
  })
  const { health, metrics } = gateway
  const admin = await startAdminServer({ host: '127.0.0.1', port: 0, health, metrics })
  onTestFinished(() => admin.close())
  const [alive, refused, ...others] = await Promise.all([
    fetch(`${admin.url}/livez`),
    ...['/away', '/quick', '/isolated', '/away'].map((to) => gateway.call(to)),
  ])
  expect(alive.status).toBe(200)
  expect(refused!.status).toBe(403)
  expect(await refused!.json()).toMatchObject({ code: 'policy_error', reason: 'policy_error' })
  expect(others.map(({ status }) => status)).toEqual([200, 200, 403])
  expect(await gateway.metric('surrogate_policies_units_used_up_total')).toContain(
    '{policies="live",entrypoint="test/away"} 2',
  )
  const told = gateway.lines.filter(({ msg }) => msg === 'a policy used up its units of work and was ended')
  expect(told).toMatchObject([{ entrypoint: 'test/away', units: 1_000_000 }])
})

test('when no thread comes free the caller is told to come again', async () => {
  const path = await ruleFolder({ 'test.rego': rules })
  const slow = { entrypoint: 'test/decision', isolation: 'worker', context: { many: 'a'.repeat(500), times: 2000 } }
  const gateway = await start({
    policies: { path, isolation: { workers: 1, deadline: '200ms' } },
    routes: [{ id: 'slow', path: '/slow', ...slow }],
  })
  const answers = await Promise.all(Array.from({ length: 8 }, () => gateway.call('/slow')))
  const unavailable = answers.find(({ status }) => status === 503)!
  expect(unavailable.headers.get('retry-after')).toBe('1')
  expect(await unavailable.json()).toMatchObject({ code: 'policy_unavailable' })
  expect(answers.map(({ status }) => status)).toContain(403)
})

test('an edited rule is in force in the threads too', async () => {
  const path = await ruleFolder({ 'test.rego': rule('true') })
  const gateway = await start({
    policies: { path, entrypoint: 'test/decision', isolation: { deadline: '5s' } },
    routes: [{ id: 'a', path: '/a', isolation: 'worker' }],
  })
  expect((await gateway.call('/a')).status).toBe(200)
  await writeFiles(path, { 'test.rego': rule('{"allow": false, "reason": "closed"}') })
  await until(async () => expect((await gateway.call('/a')).status).toBe(403))
})

test('shadow policies are compared and never enforced', async () => {
  const path = await ruleFolder({ 'test.rego': rule('true') })
  const shadow = await ruleFolder({
    'test.rego': rule(
      '{"allow": input.request.method == "GET", "reason": "read_only", "headers": {"x-plan": "secret"}}',
    ),
  })
  const gateway = await start({
    policies: { path, shadow, entrypoint: 'test/decision' },
    routes: [{ id: 'a', path: '/a' }],
  })
  const counted = (outcome: string) =>
    gateway.metric(`surrogate_gateway_shadow_decisions_total{route="a",outcome="${outcome}"}`)

  const posted = await gateway.call('/a', { method: 'POST' })
  expect(posted.status).toBe(200)
  expect(gateway.upstream.seen[0]!.headers).not.toHaveProperty('x-plan')
  await until(async () => expect(await counted('different')).toMatch(/ 1$/))
  const line = gateway.lines.find(({ msg }) => msg === 'the shadow policies decide otherwise')
  expect(line).toMatchObject({
    route: 'a',
    differs: ['allow', 'reason', 'headers'],
    live: { allow: true },
    shadow: { allow: false, reason: 'read_only', headers: ['x-plan'] },
  })
  expect(JSON.stringify(line)).not.toContain('secret')

  // Candidates that cannot be loaded are told, and compared again once they can; the live ones do not care.
  await writeFiles(shadow, { 'test.rego': rule('nonsense') })
  await until(async () =>
    expect((await gateway.health.ready()).checks['gateway shadow policies']?.detail).toContain('nonsense is unsafe'),
  )
  await writeFiles(shadow, { 'test.rego': rule('true') })
  await until(async () => {
    expect((await gateway.call('/a')).status).toBe(200)
    expect(await counted('same')).toBeDefined()
  })

  await writeFiles(shadow, { 'test.rego': rule('data.missing') })
  await until(async () => {
    expect((await gateway.call('/a')).status).toBe(200)
    expect(await counted('error')).toBeDefined()
  })
})

test('a gateway starts beside candidates that do not compile', async () => {
  const gateway = await start({
    policies: {
      path: await ruleFolder({ 'test.rego': rule('true') }),
      shadow: await ruleFolder({ 'test.rego': rule('nonsense') }),
      entrypoint: 'test/decision',
    },
    routes: [{ id: 'a', path: '/a' }],
  })
  expect((await gateway.call('/a')).status).toBe(200)
  expect(await gateway.metric('surrogate_policies_stale{policies="shadow"}')).toMatch(/ 1$/)
})
