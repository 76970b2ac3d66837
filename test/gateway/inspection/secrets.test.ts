import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { type ZodType, z } from 'zod'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'
import { gatewayFile } from '../../../gateway/config/settings/file.ts'
import { Secret } from '../../../platform/secret.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'

const makesSecret = (schema: ZodType | undefined): boolean => {
  if (!(schema instanceof z.ZodTransform)) return false
  try {
    return schema.def.transform('SECRET', { value: 'SECRET', issues: [] } as never) instanceof Secret
  } catch {
    return false
  }
}

/** Where the file may hold a secret, from the schema itself: a setting that comes later is among them. */
const secretPaths = (schema: ZodType, path: string[] = []): string[] => {
  const { def } = schema as unknown as { def: Record<string, unknown> }
  if (makesSecret(def['out'] as ZodType | undefined)) return [path.join('.')]
  if (schema instanceof z.ZodObject) {
    return Object.entries(schema.shape).flatMap(([name, member]) => secretPaths(member as ZodType, [...path, name]))
  }
  if (schema instanceof z.ZodUnion) return (def['options'] as ZodType[]).flatMap((one) => secretPaths(one, path))
  const inner = ['innerType', 'element', 'in', 'valueType'].map((name) => def[name]).filter(Boolean) as ZodType[]
  return inner.flatMap((one) => secretPaths(one, schema instanceof z.ZodRecord ? [...path, '*'] : path))
}

const issuer = {
  issuer: 'https://issuer.test',
  client: { id: 'c', secret: 'SECRET-client' },
  revocations: { mode: 'feed' },
}

/** A file that holds each of them. */
const holding: Record<string, object> = {
  'issuers.client.secret': { issuers: [issuer] },
  'issuers.introspection.client.secret': {
    issuers: [{ issuer: issuer.issuer, introspection: { client: { id: 'c', secret: 'SECRET-introspection' } } }],
  },
  'telemetry.headers.*': {
    telemetry: { otlp: 'https://otlp.test/', headers: { 'x-plain': 'SECRET-header' } },
  },
  'policies.token': { policies: { bundle: 'https://bundles.test/b.tar.gz', token: 'SECRET-bundle' } },
  'decisionLog.http.token': { decisionLog: { to: 'https://logs.test/', http: { token: 'SECRET-log' } } },
  'accessLog.http.token': { accessLog: { to: 'https://logs.test/', http: { token: 'SECRET-log' } } },
}

const shownOf = (members: object, env: Record<string, string> = {}) => {
  const file = { version: 1, ...members }
  return JSON.stringify(parseGatewayConfig(stringify(file), { file: 'gateway.yaml', env }).shown())
}

test('every setting that holds a secret is redacted where the configuration is shown', () => {
  expect(Object.keys(holding).sort()).toEqual(secretPaths(gatewayFile).sort())
  for (const [path, members] of Object.entries(holding)) {
    const shown = shownOf(members)
    expect([path, shown.includes('SECRET')]).toEqual([path, false])
    expect(shown).toContain('[redacted]')
  }
})

test('what came from the environment stands by its name, wherever it was put', () => {
  const env = { ONE: 'SECRET-one', PORT: '4711', HEADER: 'SECRET-header', URL: 'https://SECRET.test/' }
  const shown = shownOf(
    {
      issuers: [{ ...issuer, client: { id: '${ONE}', secret: '${ONE}' } }],
      upstreams: { api: { url: '${URL}' } },
      listen: { port: '${PORT}' },
      routes: [
        {
          id: 'r',
          path: '/r',
          auth: 'none',
          upstream: 'api',
          context: { deep: [{ key: 'before-${ONE}-after' }] },
          responseHeaders: { set: { 'X-Mine': '${HEADER}', 'x-api-key': 'SECRET-written', 'x-plain': 'plain' } },
        },
      ],
      decisionLog: { to: 'stdout', labels: { pod: '${ONE}' } },
    },
    env,
  )
  expect(shown).not.toContain('SECRET')
  expect(shown).not.toContain('4711')
  expect(shown).toContain('before-${ONE}-after')
  expect(JSON.parse(shown).upstreams.api.url).toBe('${URL}')
  expect(JSON.parse(shown).routes[0].responseHeaders.set).toEqual({
    'x-mine': '[redacted]',
    'x-api-key': '[redacted]',
    'x-plain': 'plain',
  })
})

test('no answer holds a token, a credential of a request, a key or a secret of the configuration', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'inspection-secrets-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = privateKey.export({ format: 'jwk' })
  await writeFile(join(folder, 'identity.json'), JSON.stringify({ ...jwk, kid: 'k', alg: 'ES256' }))
  const gateway = await startTestGateway({
    config: ({ issuer: own, upstream }) => ({
      inspection: { port: 0, audience: inspectionAudience },
      issuers: [{ issuer: own.issuer, client: { id: 'gateway', secret: 'SECRET-client' } }],
      identity: { issuer: 'https://gateway.test', keyFile: join(folder, 'identity.json') },
      decisionLog: {
        to: join(folder, 'decisions.jsonl'),
        mask: ['/input/subject', { path: '/input/token/claims', value: 'gone' }],
      },
      upstreams: { orders: { url: upstream.url, identityAudience: 'orders' } },
    }),
  })
  onTestFinished(() => gateway.close())
  const client = inspectionClient(() => gateway.inspectionUrl!, gateway.issuer)
  const stream = await client.stream()
  const own = await client.token()
  const token = await gateway.issuer.sign({ sub: 'SECRET-subject', email: 'SECRET-email', scope: 'read:orders' })
  const headers = { cookie: 'session=SECRET-cookie', 'x-api-key': 'SECRET-key', authorization: `Bearer ${token}` }
  await gateway.call(`/orders/1?access_token=SECRET-query&code=SECRET-code&api_key=SECRET-key2&q=${token}`, { headers })
  await gateway.call('/orders/1?client_secret=SECRET-query', { headers })
  await gateway.call('/orders/1?x=1', { headers: { ...headers, authorization: 'Bearer SECRET-bad' } })
  await gateway.call('/orders/1', { headers: { ...headers, authorization: 'Basic SECRET-basic' } })
  await gateway.call('/nowhere?token=SECRET-nowhere', { headers })
  await expect.poll(() => stream.events.length).toBe(5)
  stream.close()
  const ids = stream.events.map(({ data }) => data['decision_id'])
  const paths = [
    ...['/configuration', '/routes', '/upstreams', '/decisions', '/shadow', '/nowhere', '/decisions?x=SECRET'],
    ...['/decisions/SECRET', '/match?url=http://x.test/orders/1', ...ids.map((id) => `/decisions/${id}`)],
    ...ids.map((id) => `/decisions/${id}/why`),
  ]
  const answers = await Promise.all(
    paths.map(async (path) => {
      const answer = await client.call(path)
      return `${path.replaceAll('SECRET', '')} ${answer.status} ${await answer.text()} ${JSON.stringify([...answer.headers])}`
    }),
  )
  answers.push(JSON.stringify(stream.events), JSON.stringify(await client.post('/evaluate', { input: {} })))
  const forbidden = ['SECRET', token, token.split('.')[2]!, own, own.split('.')[2]!, jwk.d!]
  for (const text of answers) {
    for (const one of forbidden) expect(text.includes(one) ? `${one} in ${text}` : '').toBe('')
  }
  // What the masks have taken out finds nothing either.
  expect((await client.get('decisions', '/decisions?subject=SECRET-subject')).decisions).toEqual([])
})
