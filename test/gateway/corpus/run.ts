import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorCodes } from '../../support/http2-frames.ts'
import { type StrictRequest, type StrictUpstream, startStrictUpstream } from '../../support/strict-upstream.ts'
import type { Expectation, Forwarded, Row, Way } from './row.ts'
import { bodyRows, fieldRows } from './rows/fields.ts'
import { http1Rows } from './rows/http1.ts'
import { http2Rows } from './rows/http2.ts'
import { policyBodyRows } from './rows/policy-bodies.ts'
import { targetRows } from './rows/targets.ts'
import { type Answers, hasRow, openGoodClient, sendRow } from './send.ts'

const rows: readonly Row[] = [...targetRows, ...fieldRows, ...bodyRows, ...policyBodyRows, ...http1Rows, ...http2Rows]
const ways: readonly Way[] = [
  { name: 'HTTP/1.1', protocol: 'http1', scheme: 'http' },
  { name: 'HTTP/1.1 over TLS', protocol: 'http1', scheme: 'https' },
  { name: 'HTTP/2 over TLS', protocol: 'http2', scheme: 'https' },
]

export interface RunningCorpus {
  port: number
  close(): Promise<unknown>
}

const folded = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, '-')

/** How what the upstream saw differs from what it should have seen, in words. */
const differences = (seen: StrictRequest, wanted: Forwarded, { scheme }: Way): string[] => {
  const { method = 'GET', target, body = '', fields = {} } = wanted
  const found: string[] = []
  const compare = (what: string, one: string | undefined, other: string | undefined) => {
    if (one !== other) found.push(`${what} is ${JSON.stringify(one)}, not ${JSON.stringify(other)}`)
  }
  compare('method', seen.method, method)
  compare('target', seen.target, target)
  compare('body', seen.body, body)
  for (const [name, value] of Object.entries(fields)) {
    // No other spelling stands beside a field either.
    const values = seen.fields.filter(([one]) => folded(one) === folded(name))
    const actual = values.length === 0 ? undefined : values.map(([, one]) => one).join(', ')
    if (value === '*') {
      if (actual === undefined) found.push(`${name} is missing`)
    } else compare(name, actual, value?.replace('{scheme}', scheme))
  }
  return found
}

const expectAnswers = ({ statuses, code }: Expectation, answers: Answers, { protocol }: Way) => {
  const malformed =
    protocol === 'http2' && statuses.length === 1 && statuses[0] === 400 && answers.statuses.length === 0
  if (malformed) {
    expect([errorCodes.protocolError, errorCodes.internalError, 'closed']).toContain(answers.reset)
    return
  }
  expect(answers.statuses).toEqual(statuses)
  if (code === undefined || answers.text === '') return
  expect(answers.text).toContain(`"code":"${code}"`)
  if (protocol === 'http1') expect(answers.text).toContain('content-type: application/problem+json')
}

/**
 * Hostile requests as data, over every way into the gateway: each is refused, or goes on as one well-formed request
 * that says nothing but what it may. To add one, add its row.
 */
export const testCorpus = (start: (options: { upstream: string; tls: boolean }) => Promise<RunningCorpus>) =>
  describe.each(ways)('$name', (way) => {
    let upstream: StrictUpstream
    let gateway: RunningCorpus
    let goodClient: Awaited<ReturnType<typeof openGoodClient>>
    beforeAll(async () => {
      upstream = await startStrictUpstream()
      gateway = await start({ upstream: upstream.url, tls: way.scheme === 'https' })
      goodClient = await openGoodClient(way, gateway.port)
    })
    afterAll(async () => {
      await goodClient.close()
      await gateway.close()
      await upstream.close()
    })

    test.each(rows.filter((row) => hasRow(way, row)))('$name', async (row) => {
      upstream.seen.length = 0
      const answers = await sendRow(way, row, gateway.port)
      // Goes the way of the row, over its connection upstream: whatever was left there would come with it.
      const good = await goodClient.send()

      expect(upstream.violations).toEqual([])
      expect(upstream.seen.map(({ target }) => target)).toEqual([
        ...row.expect.forwarded.map(({ target }) => target),
        '/base/public/good',
      ])
      for (const [index, wanted] of row.expect.forwarded.entries()) {
        expect(differences(upstream.seen[index]!, wanted, way)).toEqual([])
      }
      expectAnswers(row.expect, answers, way)
      expect(good.statuses).toEqual([200])
    })
  })
