import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'

const issuer = 'https://issuer.test'
const audience = 'https://gateway.test/inspection'
const route = { id: 'r', path: '/r', audience: ['https://api.test'], issuers: [issuer], upstream: 'api' }
const base = {
  version: 1,
  issuers: [{ issuer }],
  upstreams: { api: { url: 'https://api.test' } },
  routes: [route],
  inspection: { audience },
}

const problemsOf = (members: object): string => {
  try {
    parseGatewayConfig(stringify({ ...base, ...members }), { file: 'gateway.yaml', env: {} })
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

test('a listener of its own, on loopback, for one audience', () => {
  expect(problemsOf({})).toBe('')
  expect(parseGatewayConfig(stringify(base), { file: 'gateway.yaml', env: {} }).inspection).toMatchObject({
    host: '127.0.0.1',
    port: 9303,
    keep: 67_108_864,
    route: { audience: [audience], issuers: [issuer] },
  })
})

test.each([
  ['no issuer', { issuers: [], routes: [] }, 'needs an issuer, whose tokens inspect'],
  ['no audience', { inspection: {} }, 'inspection.audience'],
  [
    'an audience of a route',
    { inspection: { audience: 'https://api.test' } },
    'is an audience of the route r: tokens for an API must not inspect',
  ],
  ['several issuers', { issuers: [{ issuer }, { issuer: 'https://b.test' }] }, 'issuers is needed'],
  ['an unknown issuer', { inspection: { audience, issuers: ['https://x.test'] } }, 'there is no issuer https://x.test'],
  ['the port of listen', { inspection: { audience, port: 3000 } }, 'inspection and listen have the same port'],
  ['the port of admin', { inspection: { audience, port: 9300 } }, 'inspection and admin have the same port'],
  [
    'the port of extAuthz',
    { trustedProxies: ['127.0.0.1/32'], extAuthz: { port: 9303 } },
    'inspection and extAuthz have the same port',
  ],
  ['plain HTTP beyond loopback', { inspection: { audience, host: '0.0.0.0' } }, 'allowInsecure: [http-inspection]'],
  ['too little for the workers', { workers: 4, inspection: { audience, keep: '2MB' } }, 'at least 1MB for each'],
])('%s', (_, members, problem) => {
  expect(problemsOf(members)).toContain(problem)
})

test('rules are saved into a folder of rules only', () => {
  const saving = { inspection: { audience, savePolicies: true } }
  expect(problemsOf({ ...saving, policies: { path: 'rules' } })).toBe('')
  expect(problemsOf(saving)).toContain('needs policies.path')
  expect(problemsOf({ ...saving, policies: { bundle: 'https://bundles.test/b.tar.gz' } })).toContain(
    'needs policies.path',
  )
})
