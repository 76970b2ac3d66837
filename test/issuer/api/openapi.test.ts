import { randomUUID } from 'node:crypto'
import { Validator } from '@seriousme/openapi-schema-validator'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { catalogue } from '../../../events/catalogue.ts'
import { fittingScopes } from '../../../issuer/base/authorization.ts'
import { type ManagementTest, startManagement } from '../../support/management.ts'
import { createFixtures } from './openapi-fixtures.ts'
import { createRequests, type Operation } from './openapi-requests.ts'

/** The document is read as its users read it, over HTTP, and the server is held against it. */

let api: ManagementTest
// biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
let document: any
let requests: ReturnType<typeof createRequests>
beforeAll(async () => {
  api = await startManagement()
  document = await (await fetch(`${api.url}/api/openapi.json`)).json()
  requests = createRequests(document)
})
afterAll(() => api.close())

const routeOf = ({ operationId }: Operation) => api.routes.find((route) => route.operationId === operationId)
const protectedOperations = () => requests.operations.filter((operation) => routeOf(operation))

const publicOperations = ['getStatus', 'getOpenApi', 'getExperienceOpenApi', 'getAsyncApi']

describe('the document', () => {
  test('is valid OpenAPI 3.1', async () => {
    expect(document.openapi).toMatch(/^3\.1\./)
    expect(await new Validator().validate(document)).toEqual({ valid: true })
  })

  test('has every route, with the scopes that open it, and nothing else', () => {
    const documented = requests.operations.map(({ operationId }) => operationId)
    expect(new Set(documented).size).toBe(documented.length)
    expect(documented.toSorted()).toEqual(
      [...api.routes.map(({ operationId }) => operationId), ...publicOperations].toSorted(),
    )
    for (const operation of protectedOperations()) {
      const route = routeOf(operation)!
      expect(operation.definition.security).toEqual(fittingScopes(route).map((scope) => ({ oauth2: [scope] })))
      expect(operation.definition.summary).toBe(route.summary)
    }
  })

  test('has every event', () => {
    expect(Object.keys(document.webhooks)).toEqual(catalogue.map(({ type }) => type))
  })

  test('names every reference that it makes', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference!)
    expect(references.length).toBeGreaterThan(100)
    for (const reference of new Set(references)) {
      const [root, section, kind, name] = reference.split('/')
      expect([root, section], reference).toEqual(['#', 'components'])
      expect(document.components[kind!], reference).toHaveProperty([name!])
    }
  })

  test('is sent to anybody, and not again to who has it', async () => {
    for (const path of [
      '/openapi.json',
      '/experience.openapi.json',
      '/asyncapi.json',
      '/docs',
      '/docs/swagger-ui.css',
    ]) {
      // `fetch` would ask caches to revalidate on its own account.
      const first = await request(`${api.url}/api${path}`)
      await first.body.dump()
      expect(first.statusCode).toBe(200)
      expect(first.headers['cache-control']).toBe('public, max-age=300')
      const again = await request(`${api.url}/api${path}`, {
        headers: { 'if-none-match': String(first.headers.etag) },
      })
      expect([again.statusCode, await again.body.text()]).toEqual([304, ''])
    }
    expect((await fetch(`${api.url}/api/status`)).status).toBe(204)
    const refused = await fetch(`${api.url}/api/openapi.json`, { method: 'POST' })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})

test('the reference page is served from here, with nothing inline and nothing from elsewhere', async () => {
  const answer = await fetch(`${api.url}/api/docs`)
  const html = await answer.text()
  expect(answer.headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  )
  expect(html).not.toMatch(/<style|style=|<script>|https?:|onload/)
  const files = [...html.matchAll(/(?:src|href)="(?!data:)([^"]+)"/g)].map(([, file]) => file!)
  expect(files).toEqual(
    expect.arrayContaining(['docs/swagger-ui.css', 'docs/swagger-ui-bundle.js', 'docs/start.js', 'openapi.json']),
  )
  for (const file of files) {
    const found = await fetch(new URL(file, `${api.url}/api/docs`))
    expect([file, found.status]).toEqual([file, 200])
    expect(found.headers.get('x-content-type-options')).toBe('nosniff')
    await found.arrayBuffer()
  }
})

const send = async (operation: Operation, path: string, body?: unknown, token?: string) => {
  const { method } = operation
  const response = await fetch(`${api.url}/api${path}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      // Handlers must be able to run inside of the transaction that keeps their answer.
      ...(method === 'POST' ? { 'idempotency-key': randomUUID() } : {}),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  // A stream has no end: its events are another test's.
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  if (isStream) await response.body?.cancel()
  const text = isStream ? '' : await response.text()
  const isLines = isStream || response.headers.get('content-type')?.startsWith('application/x-ndjson')
  const parse = () =>
    isLines ? text.split('\n').filter(Boolean).map(parseJson) : text === '' ? undefined : parseJson(text)
  return { status: response.status, headers: response.headers, body: parse() }
}
const parseJson = (text: string) => JSON.parse(text)

/** Members that exclude each other, or others: not sent in a valid request. */
const leftOut: Record<string, readonly string[]> = {
  createUser: ['passwordDigest', 'passwordAlgorithm'],
  testConnector: ['email'],
  createHook: ['event'],
  updateHook: ['event'],
  createApplication: ['oidcClientMetadata', 'customClientMetadata', 'isThirdParty'],
  updateApplication: ['oidcClientMetadata', 'customClientMetadata'],
  // The policies of keys are another test's.
  rotateSigningKeys: ['signingKeyAlgorithm', 'rotationGracePeriod', 'now'],
  rotateIdTokenKeys: ['rotationGracePeriod', 'now'],
}

const validBody = (operation: Operation, fixtures: Awaited<ReturnType<typeof createFixtures>>) => {
  const schema = requests.bodySchemaOf(operation)
  if (schema === undefined) return undefined
  const names = Object.keys(schema.properties ?? {}).filter((name) => !leftOut[operation.operationId]?.includes(name))
  return requests.sampleObject(schema, operation.operationId, fixtures, names)
}

/** Needs what no fixture has: a password that was set, a key that was replaced or that signs cookies, a relay. */
const otherwise: Record<string, number> = {
  verifyUserPassword: 422,
  deleteSigningKey: 404,
  deleteIdTokenKey: 404,
  deleteCookieKey: 404,
  testHook: 503,
  testConnector: 503,
  // No identity provider has answered.
  createUserIdentity: 404,
}

/** They are POSTs for the size of what they ask. */
const changesNothing = new Set(['previewSignIn'])

const pathOf = (operation: Operation, fixtures: Awaited<ReturnType<typeof createFixtures>>) =>
  operation.operationId === 'deleteSigningKey'
    ? '/configs/oidc/private-keys/unknown'
    : requests.pathOf(operation, fixtures)

/** What others need is gone last, and what belongs to something before that. */
const inOrder = (operations: readonly Operation[]): Operation[] => {
  const depthOf = ({ path }: Operation) => path.split('/').length
  const {
    reads = [],
    changes = [],
    deletions = [],
  } = Object.groupBy(operations, ({ method }) =>
    method === 'GET' ? 'reads' : method === 'DELETE' ? 'deletions' : 'changes',
  )
  return [...reads, ...changes, ...deletions.toSorted((left, right) => depthOf(right) - depthOf(left))]
}

test('every operation answers valid requests as documented, and every change is in the audit trail', {
  timeout: 300_000,
}, async () => {
  const deviations: string[] = []
  let fixtures = await createFixtures(api)
  const ask = async (operation: Operation) => {
    // Lists that may be read whole are read by pages here, so that the headers of pages are seen.
    const query = [...(routeOf(operation)!.paged ? ['page=1'] : []), ...requests.requiredQuery(operation, fixtures)]
    const path = `${pathOf(operation, fixtures)}${query.length > 0 ? `?${query.join('&')}` : ''}`
    const answer = await send(operation, path, validBody(operation, fixtures), api.token())
    const isExpected = answer.status === (otherwise[operation.operationId] ?? routeOf(operation)!.status)
    return { path, answer, isExpected, deviation: requests.deviation(operation, answer) }
  }
  for (const operation of inOrder(protectedOperations())) {
    let asked = await ask(operation)
    // Another operation may have ended what this one is about, or made it already: then it is asked with what is new.
    if (!asked.isExpected && asked.deviation === undefined) {
      fixtures = await createFixtures(api)
      asked = await ask(operation)
    }
    const { path, answer, isExpected, deviation } = asked
    const found = deviation ?? (isExpected ? undefined : `${answer.status} ${JSON.stringify(answer.body)}`)
    if (found !== undefined) deviations.push(`${operation.operationId}: ${found}`)
    if (operation.method === 'GET' || answer.status >= 400 || changesNothing.has(operation.operationId)) continue
    const [row] = await api.expect(200, 'GET', `/logs?page_size=1&logKey=Management.${operation.operationId}`)
    const { method, path: noted } = row?.payload ?? {}
    if (method !== operation.method || noted !== path)
      deviations.push(`${operation.operationId}: not in the audit trail`)
  }
  expect(deviations).toEqual([])
})

test('every operation refuses invalid requests as documented', { timeout: 300_000 }, async () => {
  const deviations: string[] = []
  let count = 0
  const fixtures = await createFixtures(api)
  for (const operation of protectedOperations()) {
    const path = pathOf(operation, fixtures)
    const body = validBody(operation, fixtures)
    const unknown = operation.path.replaceAll(/\{\w+\}/g, 'unknown')
    const attempts: [what: string, expected: number | undefined, ...Parameters<typeof send>][] = [
      ['without a token', 401, operation, path, body],
      ['without a scope', 403, operation, path, body, api.token({ scope: 'nothing' })],
      ...(unknown === operation.path
        ? []
        : ([
            ['of what is unknown', undefined, operation, unknown, body, api.token()],
          ] satisfies (typeof attempts)[number][])),
      ...requests
        .wrongBodies(operation, fixtures)
        .map(([what, wrong]): (typeof attempts)[number] => [what, 400, operation, path, wrong, api.token()]),
      ...requests
        .wrongQueries(operation)
        .map((query): (typeof attempts)[number] => [query, 400, operation, `${path}?${query}`, body, api.token()]),
    ]
    for (const [what, expected, ...call] of attempts) {
      const answer = await send(...call)
      count++
      const found =
        requests.deviation(operation, answer) ??
        (answer.status === (expected ?? answer.status) && (expected !== undefined || answer.status < 500)
          ? undefined
          : `${answer.status} ${JSON.stringify(answer.body)}`)
      if (found !== undefined) deviations.push(`${operation.operationId} ${what}: ${found}`)
    }
  }
  expect(deviations).toEqual([])
  expect(count).toBeGreaterThan(500)
})
