import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Answered,
  ask,
  type PolicyServer,
  startOpaServer,
  startPolicyServer,
} from '../../support/policy-server.ts'
import { writeFiles } from '../rule-folder.ts'
import { differences, sameCases } from './cases.ts'
import { rules } from './rules.ts'

/** `surrogate policy serve` and OPA's own server, over the same rules and asked the same. */

let folder: string
let ours: PolicyServer
let theirs: PolicyServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-data-api-'))
  await writeFiles(folder, rules)
  ;[ours, theirs] = await Promise.all([startPolicyServer(folder), startOpaServer(folder)])
})
afterAll(async () => {
  await Promise.all([ours.stop(), theirs.stop()])
  await rm(folder, { recursive: true })
})

/** What must be the same: the words of messages, the order of members and of sets are each server's own. */
const comparable = ({ status, headers, bytes, body }: Answered) => {
  const packed = headers['content-encoding'] === 'gzip'
  const read = packed ? JSON.parse(gunzipSync(bytes).toString()) : body
  // OPA answers some errors in plain text, or with nothing.
  const isText = status >= 400 && typeof read === 'string'
  return {
    status,
    location: headers.location,
    packed,
    body: isText || status === 405 || status === 404 ? codeOf(read) : withoutWords(read),
  }
}

const codeOf = (body: unknown): unknown =>
  (body as { code?: string }).code === 'undefined_document' ? 'undefined_document' : undefined

const withoutWords = (body: unknown): unknown => {
  if (typeof body !== 'object' || body === null || !('code' in body)) return body
  const { code, errors } = body as { code: string; errors?: { code: string }[] }
  return { code, ...(errors && { errors: errors.map((one) => one.code) }) }
}

describe('the same answer', () => {
  test.for(sameCases)('$name', async ({ name: _, ...asked }) => {
    const [one, other] = await Promise.all([ask(ours.url, asked), ask(theirs.url, asked)])
    expect(comparable(one)).toEqual(comparable(other))
  })

  test('indented where that is asked for, and ended by a line feed', async () => {
    for (const query of ['', '?pretty']) {
      const asked = { path: `/v1/data/testmod/arr${query}`, body: '{"input": 1}' }
      expect((await ask(ours.url, asked)).bytes).toEqual((await ask(theirs.url, asked)).bytes)
    }
  })

  test('metrics have OPA’s names', async () => {
    const asked = { path: '/v1/data/testmod/arr?metrics', body: '{"input": 1}' }
    const namesOf = (answer: Answered) => Object.keys((answer.body as { metrics: object }).metrics)
    const named = namesOf(await ask(ours.url, asked))
    expect(named).toEqual(['timer_rego_input_parse_ns', 'timer_rego_query_eval_ns', 'timer_server_handler_ns'])
    expect(namesOf(await ask(theirs.url, asked))).toEqual(expect.arrayContaining(named))
  })

  test('Prometheus gets request durations by OPA’s names', async () => {
    const asked = { path: '/v1/data/testmod/arr', body: '{"input": 1}' }
    const counted = /^http_request_duration_seconds_count\{(.*handler="v1\/data".*)\} \d+$/m
    for (const { url } of [ours, theirs]) {
      await ask(url, asked)
      const { body } = await ask(url, { path: '/metrics' })
      const [, labels] = counted.exec(String(body))!
      expect(
        labels!
          .split(',')
          .map((label) => label.split('=')[0])
          .toSorted(),
      ).toEqual(['code', 'handler', 'method'])
    }
  })
})

describe('another answer, on purpose', () => {
  test.for(differences)('$name: $because', async ({ name: _, because: __, ours: wanted, theirs: known, ...asked }) => {
    const [one, other] = await Promise.all([ask(ours.url, asked), ask(theirs.url, asked)])
    expect({ status: one.status, ...('body' in wanted && { body: one.body }) }).toEqual(wanted)
    // Were it the same one day, it would belong to the others.
    expect({ status: other.status, ...('body' in known && { body: other.body }) }).toEqual(known)
  })

  test('a path that is no entrypoint says how it becomes one, and what there is below', async () => {
    const messageOf = async (path: string) => ((await ask(ours.url, { path, body: '{}' })).body as Error).message
    expect(await messageOf('/v1/data/testmod/not_asked')).toContain(
      'annotate the rule with "# METADATA" and "# entrypoint: true"',
    )
    expect(await messageOf('/v1/data/a/b')).toBe(
      'data.a.b is no entrypoint: ask for one of the entrypoints below it: a/b/decision',
    )
    expect(await messageOf('/v1/data/a')).toContain('a/b/decision')
    expect(await messageOf('/v1/data')).toMatch(/^data is no entrypoint: ask for one of the entrypoints below it: /)
  })

  test('explanations are lines with the rules that were asked', async () => {
    const { body } = await ask(ours.url, { path: '/v1/data/testmod/p?explain=full', body: '{"input": {"x": 1}}' })
    expect(body).toMatchObject({
      result: true,
      explanation: expect.arrayContaining([expect.stringMatching(/^\+ p {2}testmod\.rego:\d+/)]),
    })
  })

  test('provenance is the revision of the rules', async () => {
    const { body } = await ask(ours.url, { path: '/v1/data/testmod/arr?provenance', body: '{}' })
    expect(body).toMatchObject({
      provenance: { bundles: { policies: { revision: expect.stringMatching(/^[0-9a-f]{12}$/) } } },
    })
  })
})
