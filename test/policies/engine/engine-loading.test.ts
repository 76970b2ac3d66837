import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../../platform/logger.ts'
import { loadPolicies } from '../../../policies/decide.ts'
import { PolicyError } from '../../../policies/engine/base/policy-error.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { createWasmEngine, loadWasmEngine } from '../../../policies/engine/evaluate/engine.ts'
import { startIsolation } from '../../../policies/engine/threads/isolation.ts'
import { openBundle } from '../../../policies/engine/threads/open-bundle.ts'
import { ruleFolder } from '../rule-folder.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const rule = `package test

# METADATA
# entrypoint: true
decision := {"plan": plan, "year": time.date(time.now_ns())[0] > 2000} if {
  plan := data.users[input.user].plan
  not input.boom
}

decision := value if {
  some value in [1, 2]
  input.boom
}

# METADATA
# entrypoint: true
counted := count([x | some x in numbers.range(1, input.size)])
`

const users = (count: number, plan: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, id) => [`user${id}`, { id, plan, note: 'ünïcode'.repeat(4) }]))

/** About 3 MB. */
const documents = (plan: string) => JSON.stringify({ users: users(30_000, plan) })

const bundleOf = async (data: string) =>
  compilePolicies({
    sources: new Map([
      ['test.rego', encode(rule)],
      ['data.json', encode(data)],
    ]),
    opa: await findOpa(),
  })

test('a bundle with large documents is opened in a thread, and answers as one that was opened here', async () => {
  const bundle = await openBundle(await bundleOf(documents('gold')))
  expect(bundle.prepared).toBeDefined()
  const engine = await loadWasmEngine(bundle.prepared!)
  expect(engine.evaluate('test/decision', { user: 'user29999' })).toEqual({ plan: 'gold', year: true })
  expect(engine.evaluate('test/decision', { user: 'nobody' })).toBeUndefined()
  const { external } = process.memoryUsage()
  for (let round = 0; round < 20; round++) {
    expect(() => engine.evaluate('test/decision', { user: 'user1', boom: true })).toThrow(PolicyError)
    expect(engine.evaluate('test/decision', { user: `user${round}` })).toEqual({ plan: 'gold', year: true })
  }
  // Errors can be provoked, so they cost no memory, nor a collection of what V8 believes is one.
  expect(process.memoryUsage().external - external).toBeLessThan(bundle.prepared!.image.size)
  expect((bundle.data as { users: Record<string, unknown> }).users['user7']).toMatchObject({ id: 7 })
})

test('the memory it was loaded in is used by one engine, also after it was full; others have their own', async () => {
  const { prepared } = await openBundle(await bundleOf(documents('gold')))
  const engine = await loadWasmEngine(prepared!, { limits: { units: 1_000_000_000 } })
  const isolation = await startIsolation({ prepared: prepared!, deadline: 10_000 })
  onTestFinished(isolation.close)

  for (const size of [100_000, 3, 100_000]) {
    expect(engine.evaluate('test/counted', { size })).toBe(size)
    expect(() => engine.evaluate('test/counted', { size: 1_000_000 })).toThrow('opa_malloc: failed')
    expect(() => engine.evaluate('test/decision', { user: 'user1', boom: true })).toThrow(PolicyError)
    expect(engine.evaluate('test/decision', { user: 'user2' })).toEqual({ plan: 'gold', year: true })
    expect(await isolation.evaluate('test/decision', { user: 'user3' })).toEqual({ plan: 'gold', year: true })
  }
})

test('a small one is opened at once', async () => {
  const bundle = await openBundle(await bundleOf('{"users":{"user1":{"plan":"silver"}}}'))
  expect(bundle.prepared).toBeUndefined()
  const engine = await createWasmEngine(bundle)
  expect(engine.evaluate('test/decision', { user: 'user1' })).toEqual({ plan: 'silver', year: true })
})

test('what is wrong with a large bundle is told as for a small one', async () => {
  const large = 'x'.repeat(3_000_000)
  const folder = await ruleFolder({ 'test.rego': rule, 'data.json': `{"users": "${large}", ` })
  await expect(loadPolicies({ path: folder, logger: silentLogger })).rejects.toThrow(PolicyError)
  const wrong = await ruleFolder({ 'test.rego': `${rule}\nx := nothing`, 'data.json': JSON.stringify({ large }) })
  await expect(loadPolicies({ path: wrong, logger: silentLogger })).rejects.toThrow(/test\.rego:\d+:6: .*nothing/)
})

test('requests go on being decided while three megabytes of documents are compiled, loaded and swapped in', async () => {
  const before = await loadPolicies({
    path: await ruleFolder({ 'test.rego': rule, 'data.json': documents('old') }),
    logger: silentLogger,
  })
  const folder = await ruleFolder({ 'test.rego': rule, 'data.json': documents('new') })
  let decisions = 0
  let loaded = false
  const loading = loadPolicies({ path: folder, logger: silentLogger }).finally(() => {
    loaded = true
  })
  while (!loaded) {
    expect(before.evaluate('test/decision', { user: 'user7' })).toEqual({ plan: 'old', year: true })
    decisions++
    await nextTurn()
  }
  expect(decisions).toBeGreaterThan(100)
  expect((await loading).evaluate('test/decision', { user: 'user7' })).toEqual({ plan: 'new', year: true })
})
