import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { silentLogger } from '../../../platform/logger.ts'
import { loadPolicies, type PolicyInput, type PolicySet } from '../../../policies/decide.ts'
import { sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { writeRules } from '../../support/rules.ts'

/**
 * Many upstreams read `X_Plan` and `x.plan` as `x-plan`: what policies say and see has no second spelling beside it.
 */

const rules = `package spelling

# METADATA
# entrypoint: true
decision := {"allow": true, "headers": {"x-plan": "silver", "x-tier-2": "b"}}
`

let gateway: TestGateway
let asked: PolicyInput | undefined
beforeAll(async () => {
  const { folder, remove } = await writeRules({ 'spelling.rego': rules })
  const set = await loadPolicies({ path: folder, logger: silentLogger })
  await remove()
  const recording: PolicySet = {
    ...set,
    evaluate(entrypoint, input) {
      asked = input as PolicyInput
      return set.evaluate(entrypoint, input)
    },
  }
  gateway = await startTestGateway({
    policies: { current: () => recording },
    config: ({ upstream }) => ({
      upstreams: { api: { url: upstream.url } },
      routes: [
        {
          id: 'all',
          path: '/**',
          auth: 'none',
          upstream: 'api',
          entrypoint: 'spelling/decision',
          policyHeaders: ['x-tenant'],
        },
      ],
    }),
  })
})
afterAll(() => gateway.close())
beforeEach(() => {
  gateway.upstream.seen.length = 0
})

/** The fields that reach the upstream and begin so, in any spelling. */
const upstreamFields = async (pattern: RegExp, ...fields: string[]): Promise<string[]> => {
  const lines = ['GET /a HTTP/1.1', 'Host: a.test', 'Connection: close', ...fields, '', '']
  expect(await sendRaw(gateway.port, lines.join('\r\n'))).toMatch(/^HTTP\/1.1 200 /)
  const { rawHeaders } = gateway.upstream.seen[0]!
  return rawHeaders.flatMap((name, index) =>
    index % 2 === 0 && pattern.test(name) ? [`${name}: ${rawHeaders[index + 1]}`] : [],
  )
}

test.each(['X-Plan', 'x-plan', 'X_Plan', 'x_PLAN', 'x.plan', 'X+Plan', "x'plan"])(
  'what the policy sets takes the place of the field %s of a client',
  async (name) => {
    expect(await upstreamFields(/plan/i, `${name}: gold`, 'X-Planet: mars')).toEqual([
      'x-planet: mars',
      'x-plan: silver',
    ])
  },
)

test('digits are no odd characters, and other fields stay', async () => {
  const fields = ['X_Tier_2: a', 'x-tier.2: a', 'x-tier-22: c', 'x_tier: d', 'x-tier2: e']
  expect(await upstreamFields(/tier/i, ...fields)).toEqual(['x-tier-22: c', 'x_tier: d', 'x-tier2: e', 'x-tier-2: b'])
})

test('beside a field that the policy saw there is no other spelling of it', async () => {
  expect(await upstreamFields(/tenant/i, 'X_Tenant: b', 'X-Tenant: a', 'x.tenant: c', 'X-Tenants: d')).toEqual([
    'x-tenant: a',
    'x-tenants: d',
  ])
  expect(asked!.request.headers).toEqual({ 'x-tenant': ['a'] })
})

test('nor in the place of one that it did not see', async () => {
  expect(await upstreamFields(/tenant/i, 'X_Tenant: b')).toEqual([])
  expect(asked!.request.headers).toEqual({})
})

test('a field that programs take for a proxy to use is dropped (httpoxy)', async () => {
  expect(await upstreamFields(/proxy/i, 'Proxy: http://evil.test')).toEqual([])
})

test('a body has no coding beside the one that was looked at', async () => {
  const fields = ['Content_Encoding: gzip', 'Content-Encoding: identity', 'content.encoding: br']
  expect(await upstreamFields(/content.encoding/i, ...fields)).toEqual(['content-encoding: identity'])
})
