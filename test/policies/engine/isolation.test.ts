import { readdir, readFile } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { PolicyBusy, UnitsUsedUp } from '../../../policies/engine/base/policy-error.ts'
import { readBundle } from '../../../policies/engine/bundle/bundle.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { prepareEngine } from '../../../policies/engine/instance/runner.ts'
import { type IsolationOptions, startIsolation } from '../../../policies/engine/threads/isolation.ts'
import { until } from '../../support/until.ts'

/** OPA's own `replace` never returns when `input.old` is empty. */
const rules = `package test

# METADATA
# entrypoint: true
decision := {"answer": input.ask, "limit": data.limit}

# METADATA
# entrypoint: true
slow := replace("text", input.old, "new")

# METADATA
# entrypoint: true
talkative if print("asked", input.ask)
`

const bundleOf = async (text: string) => {
  const sources = new Map([
    ['test.rego', new TextEncoder().encode(text)],
    ['data.json', new TextEncoder().encode('{"limit": 7}')],
  ])
  return readBundle(await compilePolicies({ sources, opa: await findOpa(), capabilities: null }))
}
const bundle = bundleOf(rules)

const isolate = async (options: IsolationOptions & { print?: (line: string) => void }) => {
  const { built, ...source } = await bundle
  const runaways: string[] = []
  const isolation = await startIsolation({
    ...options,
    prepared: prepareEngine(source),
    reads: built?.reads,
    onRunaway: (entrypoint) => runaways.push(entrypoint),
  })
  onTestFinished(isolation.close)
  return { ...isolation, runaways }
}

const forever = { old: '' }
/** By units or, where other processes leave it no time, by the clock. */
const ended = /^the policy (used up its \d+ units of work|gave no answer within \d+ ms)$/

test('an isolated policy answers as on the main thread, prints included', async () => {
  const lines: string[] = []
  const { evaluate } = await isolate({ deadline: 10_000, print: (line) => lines.push(line) })
  expect(await evaluate('test/decision', { ask: 'ü' })).toEqual({ answer: 'ü', limit: 7 })
  expect(await evaluate('test/decision', {})).toBeUndefined()
  expect(await evaluate('test/talkative', { ask: 'why' })).toBe(true)
  expect(lines).toEqual(['asked why'])
})

test('a policy that uses none of the functions of the host does without them, one that uses some has them', async () => {
  const rule = (value: string) => `package test\n\n# METADATA\n# entrypoint: true\ndecision := ${value}\n`
  for (const [value, answer] of [
    ['count(input.ask)', 3],
    ['sprintf("%05d", [count(input.ask)])', '00003'],
  ] as const) {
    const prepared = prepareEngine(await bundleOf(rule(value)))
    expect(Object.values(prepared.image.builtins)).toEqual(typeof answer === 'number' ? [] : ['sprintf'])
    const { evaluate, close } = await startIsolation({ prepared, deadline: 10_000 })
    onTestFinished(close)
    expect(await evaluate('test/decision', { ask: 'yes' })).toBe(answer)
  }
})

test('what was answered lately needs no thread, unless rules print', async () => {
  const lines: string[] = []
  const { evaluate } = await isolate({
    workers: 1,
    deadline: 10_000,
    units: 100_000_000,
    print: (line) => lines.push(line),
  })
  await evaluate('test/decision', { ask: 1 })
  await evaluate('test/talkative', { ask: 1 })
  expect(await evaluate('test/talkative', { ask: 1 })).toBe(true)
  expect(lines).toEqual(['asked 1', 'asked 1'])

  let over = false
  const away = expect(evaluate('test/slow', forever).finally(() => (over = true))).rejects.toThrow(UnitsUsedUp)
  expect(await evaluate('test/decision', { ask: 1, unread: 2 })).toEqual({ answer: 1, limit: 7 })
  expect(over).toBe(false)
  await away
})

test('what goes wrong in the thread is said, and the thread goes on', async () => {
  const { evaluate } = await isolate({ deadline: 10_000 })
  await expect(evaluate('test/nothing', {})).rejects.toThrow('the policy has no entrypoint test/nothing')
  await expect(evaluate('test/decision', { ask: 'x'.repeat(70_000) })).rejects.toThrow('larger than 65536 bytes')
  expect(await evaluate('test/decision', { ask: 1 })).toEqual({ answer: 1, limit: 7 })
})

test('an evaluation that runs away ends with its units, and others are answered meanwhile and afterwards', async () => {
  const { evaluate, runaways } = await isolate({ deadline: 10_000, units: 20_000_000 })
  const away = expect(evaluate('test/slow', forever)).rejects.toThrow(UnitsUsedUp)
  const others = Array.from({ length: 50 }, (_, ask) => evaluate('test/decision', { ask }))
  expect(await Promise.all(others)).toContainEqual({ answer: 49, limit: 7 })
  await away
  expect(runaways).toEqual(['test/slow'])
  expect(await evaluate('test/decision', { ask: 'still here' })).toMatchObject({ answer: 'still here' })
})

test('an evaluation that units do not end is ended with its thread, and another thread takes its place', async () => {
  // Handed over together, behind one that goes alone, they take longer than one may.
  const { evaluate, runaways } = await isolate({ workers: 1, deadline: 50, batch: 64 })
  const first = evaluate('test/decision', { ask: 1 })
  const away = Array.from({ length: 64 }, () => evaluate('test/slow', forever).catch((error: Error) => error.message))
  expect(await Promise.all(away)).toEqual(Array(64).fill('the policy gave no answer within 100 ms'))
  expect(runaways).toHaveLength(64)
  expect(await first).toMatchObject({ answer: 1 })
  expect(await until(() => evaluate('test/decision', { ask: 'still here' }))).toMatchObject({ answer: 'still here' })
})

test('who ran away has few units for a while: other inputs of the same rules are answered meanwhile', async () => {
  const { evaluate, runaways } = await isolate({ deadline: 400 })
  await expect(evaluate('test/slow', forever)).rejects.toThrow(ended)
  const away = Array.from({ length: 3 }, () => evaluate('test/slow', forever).catch((error: Error) => error.message))
  for (const old of ['t', 'e', 'x']) {
    expect(await until(() => evaluate('test/slow', { old }))).toBe('text'.replaceAll(old, 'new'))
  }
  expect(await Promise.all(away)).toEqual(Array(3).fill('no thread came free for the policy in time'))
  expect(runaways).toEqual(['test/slow'])
})

test('after a rest one gets all units again, and is refused again', async () => {
  const { evaluate, runaways } = await isolate({ workers: 1, deadline: 100 })
  await until(async () => {
    await expect(evaluate('test/slow', forever)).rejects.toThrow(/used up|no answer|no thread came free/)
    expect(runaways.length).toBeGreaterThan(1)
  })
  expect(await until(() => evaluate('test/slow', { old: 'e' }))).toBe('tnewxt')
  expect(await evaluate('test/decision', { ask: 1 })).toMatchObject({ answer: 1 })
})

test('rules that ran away never take the last free thread', async () => {
  const { evaluate } = await isolate({ workers: 2, deadline: 500 })
  await expect(evaluate('test/slow', forever)).rejects.toThrow(ended)
  const away = Array.from({ length: 3 }, () => evaluate('test/slow', forever).catch((error: Error) => error.name))
  for (let ask = 0; ask < 100; ask++) {
    expect(await evaluate('test/decision', { ask })).toMatchObject({ answer: ask })
  }
  for (const name of await Promise.all(away)) expect(name).toMatch(/^(UnitsUsedUp|PolicyError|PolicyBusy)$/)
})

test('whoever waits for too long is told that no thread came free', async () => {
  const { evaluate } = await isolate({ workers: 1, deadline: 100 })
  const ends = await Promise.all(
    Array.from({ length: 20 }, () => evaluate('test/slow', forever).catch((error: Error) => error.message)),
  )
  expect(ends[0]).toMatch(ended)
  expect(ends.at(-1)).toBe('no thread came free for the policy in time')
})

test('more than may wait are refused; who waits gets the next thread', async () => {
  const { evaluate } = await isolate({ workers: 1, deadline: 2_000, units: 20_000_000, queue: 1 })
  await Promise.all([
    expect(evaluate('test/slow', forever)).rejects.toThrow(ended),
    expect(evaluate('test/decision', { ask: 1 })).resolves.toMatchObject({ answer: 1 }),
    expect(evaluate('test/decision', { ask: 2 })).rejects.toThrow(PolicyBusy),
  ])
})

test('evaluations handed over together are answered each for itself', async () => {
  const { evaluate } = await isolate({ workers: 1, deadline: 10_000, batch: 64 })
  const answers = await Promise.allSettled(
    Array.from({ length: 200 }, (_, ask) => evaluate(ask % 2 === 0 ? 'test/decision' : 'test/nothing', { ask })),
  )
  for (const [ask, answer] of answers.entries()) {
    if (ask % 2 === 0) expect(answer).toMatchObject({ status: 'fulfilled', value: { answer: ask } })
    else expect(answer).toMatchObject({ status: 'rejected' })
  }
})

test.runIf(process.platform === 'linux')('its threads step back for the one that serves requests', async () => {
  await isolate({ workers: 2, nice: 7 })
  const threads = await readdir('/proc/self/task')
  const stats = await Promise.all(threads.map((id) => readFile(`/proc/self/task/${id}/stat`, 'utf8').catch(() => '')))
  // proc(5): the 19th field is the nice value; the second one, a name in parentheses, may hold blanks.
  const nice = stats.map((line) => line.slice(line.lastIndexOf(')') + 2).split(' ')[16])
  expect(nice.filter((value) => value === '7')).toHaveLength(2)
})

test('closing lets what was asked come to its end and refuses what comes later', async () => {
  const isolation = await isolate({ deadline: 10_000 })
  const asked = Array.from({ length: 20 }, (_, ask) => isolation.evaluate('test/decision', { ask }))
  await isolation.close()
  expect(await Promise.all(asked)).toHaveLength(20)
  await expect(isolation.evaluate('test/decision', { ask: 1 })).rejects.toThrow(PolicyBusy)
})

test('a policy that cannot be started is an error at the start', async () => {
  const { module, image } = prepareEngine(await bundle)
  const unable = { module, image: { ...image, builtins: ['http.send'] } }
  await expect(startIsolation({ prepared: unable })).rejects.toThrow('not supplied: http.send')
})
