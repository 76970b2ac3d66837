import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { json, startBodyGateway } from '../../support/body-policies.ts'
import { until } from '../../support/until.ts'

/** What the decision log says of bodies, whose members are often about people. */

const bodies = [
  '{"amount":1,"card":"card-4111"}',
  '{"amount":101,"card":"card-4222"}',
  '{"card":"card-4333","card":"card-4444"}',
]

const linesWith = async (settings: object) => {
  const folder = await mkdtemp(join(tmpdir(), 'logged-bodies-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const to = join(folder, 'decisions.jsonl')
  const { call, lines: own } = await startBodyGateway({ config: () => ({ decisionLog: { to, ...settings } }) })
  for (const body of bodies) await call('/payments', { method: 'POST', body, headers: json })
  await call('/payments')
  const text = await until(async () => {
    const found = await readFile(to, 'utf8')
    expect(found.trim().split('\n')).toHaveLength(4)
    return found
  })
  const events = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return { text, own: JSON.stringify(own), events }
}

test('they are left out, and it says so', async () => {
  const { text, own, events } = await linesWith({ mask: ['/input/request/body/card', '/input/token/claims'] })
  expect(text + own).not.toMatch(/card-4/)
  expect(events.map(({ erased }) => erased)).toEqual([
    ['/input/request/body', '/input/token/claims'],
    ['/input/request/body', '/input/token/claims'],
    ['/input/token/claims'],
    ['/input/token/claims'],
  ])
  expect(events.map(({ http }) => http.status)).toEqual([200, 403, 400, 200])
  expect(events[0].input.request.method).toBe('POST')
})

test('they stand there where that is asked for, without what is masked', async () => {
  const { text, events } = await linesWith({ body: 'keep', mask: ['/input/request/body/card'] })
  expect(text).not.toMatch(/card-4/)
  expect(events.map(({ input }) => input.request.body)).toEqual([{ amount: 1 }, { amount: 101 }, undefined, undefined])
  expect(events.map(({ erased }) => erased)).toEqual([
    ['/input/request/body/card'],
    ['/input/request/body/card'],
    undefined,
    undefined,
  ])
})
