import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, type PolicyServer, startOpaServer, startPolicyServer } from '../../support/policy-server.ts'
import { writeFiles } from '../rule-folder.ts'
import { rules } from './rules.ts'

/**
 * Clients of OPA as their sources say that they ask and read: none of them is a dependency, so what they send is sent
 * from here, to both servers.
 */

let folder: string
const servers: Record<'ours' | 'theirs', PolicyServer | undefined> = { ours: undefined, theirs: undefined }
const token = 'a-token-that-is-long-enough'

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-data-api-'))
  await writeFiles(join(folder, 'rules'), rules)
  await writeFile(join(folder, 'tokens'), token)
  servers.ours = await startPolicyServer(join(folder, 'rules'), ['--token-file', join(folder, 'tokens')])
  servers.theirs = await startOpaServer(join(folder, 'rules'))
})
afterAll(async () => {
  await Promise.all([servers.ours?.stop(), servers.theirs?.stop()])
  await rm(folder, { recursive: true })
})

const authorization = `Bearer ${token}`

describe.each(['ours', 'theirs'] as const)('%s', (which) => {
  const url = () => servers[which]!.url

  describe('@open-policy-agent/opa', () => {
    const headers = { 'content-type': 'application/json', accept: 'application/json', authorization }
    const evaluate = async (path: string, input?: unknown) => {
      const answer =
        input === undefined
          ? await fetch(`${url()}/v1/data/${path}`, { headers: { accept: headers.accept, authorization } })
          : await fetch(`${url()}/v1/data/${path}`, { method: 'POST', headers, body: JSON.stringify({ input }) })
      // Its matchers: 200 with a result or without, 400 and 500 with code and message, all as application/json.
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
      return {
        status: answer.status,
        body: (await answer.json()) as { result?: unknown; code?: string; message?: string },
      }
    }

    test('evaluate', async () => {
      expect(await evaluate('testmod/decision', { user: 'alice' })).toMatchObject({
        status: 200,
        body: { result: { allow: true, user: 'alice' } },
      })
      expect(await evaluate('testmod/arr')).toEqual({ status: 200, body: { result: [1, 2, 3, 4] } })
      expect(await evaluate('testmod/undef', {})).toEqual({ status: 200, body: {} })
      expect(await evaluate('testmod/conflict', { a: 1, b: 1 })).toMatchObject({
        status: 500,
        body: {
          code: 'internal_error',
          message: expect.any(String),
          errors: [{ code: 'eval_conflict_error', message: expect.any(String) }],
        },
      })
    })

    test('evaluateDefault', async () => {
      const answer = await fetch(`${url()}/`, { method: 'POST', headers, body: JSON.stringify({ user: 'alice' }) })
      expect(await answer.json()).toEqual({ got: { user: 'alice' } })
    })

    test('evaluateBatch falls back to single questions after 404', async () => {
      const body = JSON.stringify({ inputs: { one: {} } })
      const answer = await fetch(`${url()}/v1/batch/data/testmod/arr`, { method: 'POST', headers, body })
      expect(answer.status).toBe(404)
    })

    test('health', async () => {
      const answer = await fetch(`${url()}/health?bundles=true&plugins=true`, { headers: { accept: headers.accept } })
      expect({ status: answer.status, body: await answer.json() }).toEqual({ status: 200, body: {} })
    })

    test('gzip both ways', async () => {
      const input = { user: 'x'.repeat(2_000) }
      const answer = await fetch(`${url()}/v1/data/testmod/whole`, {
        method: 'POST',
        headers: { ...headers, 'content-encoding': 'gzip', 'accept-encoding': 'gzip' },
        body: gzipSync(JSON.stringify({ input })),
      })
      expect(answer.headers.get('content-encoding')).toBe('gzip')
      expect(await answer.json()).toEqual({ result: input })
    })
  })

  test('opa-python-client: check_connection, check_health, check_policy_rule', async () => {
    const headers = {
      'user-agent': 'python-urllib3/2.2',
      accept: '*/*',
      'accept-encoding': 'gzip, deflate',
      authorization,
    }
    expect((await fetch(`${url()}/v1/policies/`, { headers })).status).toBe(200)
    expect((await fetch(`${url()}/health?bundle=True`, { headers })).status).toBe(200)
    const body = JSON.stringify({ input: { req1: 2 } })
    const answer = await ask(url(), { path: '/v1/data/testmod/gt1', headers, body })
    expect(answer.body).toEqual({ result: true })
  })

  test('opa-java-client: queryForDocument, by the HTTP client of Java, which offers HTTP/2', async () => {
    const headers = {
      connection: 'Upgrade, HTTP2-Settings',
      upgrade: 'h2c',
      'http2-settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
      'user-agent': 'Java-http-client/17.0.2',
      'content-type': 'application/json',
      authorization,
    }
    const body = JSON.stringify({ input: { user: 'alice' } })
    const answer = await ask(url(), { path: '/v1/data/testmod/decision', headers, body })
    expect(answer).toMatchObject({ status: 200, body: { result: { allow: true } } })
  })

  test('clients with a slash at the end of their base URL follow the redirect, with method and body', async () => {
    const answer = await fetch(`${url()}//v1/data/testmod/gt1`, {
      method: 'POST',
      headers: { authorization },
      body: '{"input": {"req1": 2}}',
    })
    expect(await answer.json()).toEqual({ result: true })
  })

  test('curl, which sends forms', async () => {
    const answer = await fetch(`${url()}/v1/data/testmod/gt1`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', authorization },
      body: '{"input": {"req1": 2}}',
    })
    expect(await answer.json()).toEqual({ result: true })
  })

  test('webhooks of Kubernetes, which ask by v0', async () => {
    const answer = await fetch(`${url()}/v0/data/testmod/whole`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization },
      body: JSON.stringify({ kind: 'AdmissionReview', request: { uid: 'u1' } }),
    })
    expect(await answer.json()).toEqual({ kind: 'AdmissionReview', request: { uid: 'u1' } })
  })
})
