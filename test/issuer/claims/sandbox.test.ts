import type { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { checkResult } from '../../../issuer/claims/claims-result.ts'
import { type ClaimsSandbox, createClaimsSandbox, type SandboxOptions } from '../../../issuer/claims/sandbox/sandbox.ts'
import { claimsScript } from '../../support/claims-script.ts'

/** What a script can do in its sandbox: nothing that anybody else would notice. */

let sandbox: ClaimsSandbox

beforeAll(async () => {
  // No script is ended by the clock because the machine is busy with something else.
  sandbox = createClaimsSandbox({ workers: 2, limits: { wallMs: 60_000 } })
  await sandbox.start()
})

afterAll(() => sandbox?.close())

const ownSandbox = async (options: SandboxOptions = {}) => {
  const own = createClaimsSandbox({ workers: 2, ...options, limits: { wallMs: 60_000, ...options.limits } })
  onTestFinished(() => own.close())
  await own.start()
  return own
}

let callers = 0
const callOf = (body: string, owner = `caller ${callers++}`) => ({
  script: claimsScript(body),
  input: JSON.stringify({ token: { jti: 'T' }, context: { user: { id: 'U' } } }),
  environmentVariables: { KEY: 'sekret-of-the-script', SHORT: 'on' },
  owner,
})

const run = async (body: string, on = sandbox, owner?: string) => (await on.run(callOf(body, owner))).outcome

/** What a script says it sees. */
const seen = async (expression: string) => {
  const outcome = await run(`return { seen: ${expression} }`)
  return 'returned' in outcome ? JSON.parse(outcome.returned ?? 'null').seen : outcome
}

describe('what a script finds', () => {
  test('the language, and nothing of Node', async () => {
    const names = [
      'process',
      'require',
      'module',
      'global',
      'Buffer',
      'setTimeout',
      'WebAssembly',
      'Worker',
      'fetch',
      'Atomics',
    ]
    expect(await seen(`[${names.map((name) => `typeof ${name}`)}]`)).toEqual(names.map(() => 'undefined'))
  })

  test('no way out through constructors, import or eval', async () => {
    expect(await seen(`[].constructor.constructor('return typeof process + typeof require')()`)).toBe(
      'undefinedundefined',
    )
    expect(await seen(`api.denyAccess.constructor.constructor('return typeof process')()`)).toBe('undefined')
    expect(await seen(`console.log.constructor('return this === globalThis && typeof process')()`)).toBe('undefined')
    expect(await seen(`eval('typeof process')`)).toBe('undefined')
    expect(await run(`return { fs: await import('node:fs') }`)).toMatchObject({ failed: 'error' })
    expect(await run(`return { fs: await import('./package.json') }`)).toMatchObject({ failed: 'error' })
  })

  test('nothing that an earlier call left behind', async () => {
    const leave = `globalThis.left = Object.prototype.left = Array.prototype.left = JSON.left = environmentVariables.KEY; return {}`
    const looked = await Promise.all([
      ...Array.from({ length: 8 }, () => run(leave)),
      ...Array.from({ length: 8 }, () =>
        run(`return { seen: [globalThis.left, {}.left, [].left, JSON.left].map((x) => typeof x) }`),
      ),
    ])
    expect(looked.slice(8)).toEqual(
      Array(8).fill({ returned: '{"seen":["undefined","undefined","undefined","undefined"]}' }),
    )
  })

  test.each([
    [
      'finalizers',
      'globalThis.r = new FinalizationRegistry(() => { for (;;); }); const o = {}; o.o = o; r.register(o); globalThis.o = o',
    ],
    ['generators', 'globalThis.g = (function* () { try { yield 1 } finally { for (;;); } })(); g.next()'],
    ['promises', 'globalThis.p = (async () => { try { await new Promise(() => {}) } finally { for (;;); } })()'],
    ['deep objects', 'let o = {}; for (let i = 0; i < 3e4; i++) o = { o }; globalThis.o = o'],
    [
      'deep functions',
      'let f = () => 1; for (let i = 0; i < 1e4; i++) { const g = f; f = () => g() } globalThis.f = f',
    ],
  ])('%s that are left behind run no more, and the next call has its thread', async (_, leave) => {
    const own = await ownSandbox({ workers: 1 })
    expect(await run(`${leave}; return {}`, own)).toEqual({ returned: '{}' })
    expect(await run('return { next: 1 }', own)).toEqual({ returned: '{"next":1}' })
  })

  test('what the language does when it makes the input is the script’s own affair', async () => {
    const call = callOf('')
    const script = `Object.defineProperty(Object.prototype, 'api', { set() { throw 1 } })
      const getCustomJwtClaims = (given) => ({ given: Object.keys(given) })`
    expect((await sandbox.run({ ...call, script })).outcome).toEqual({
      returned: '{"given":["token","context","environmentVariables"]}',
    })
  })

  test('its own changes of the language fool only itself', async () => {
    const forge = `JSON.stringify = () => '{"forged":1}'; JSON.parse = null; Promise.prototype.then = null; Object.prototype.toJSON = () => ({ forged: 2 });`
    expect(await run(`${forge} return { a: 1 }`)).toEqual({ returned: '{"forged":2}' })
    expect(await seen('1')).toBe(1)
  })
})

describe('what it returns', () => {
  const wrong = async (body: string) => {
    const outcome = await run(body)
    if (!('returned' in outcome)) return outcome
    const checked = checkResult(outcome.returned)
    return 'wrong' in checked ? checked.wrong : checked
  }

  test.each([
    ['an array', 'return [1]', 'It returned an array: an object is needed.'],
    ['a string', 'return "text"', 'It returned a string: an object is needed.'],
    ['null', 'return null', 'It returned null: an object is needed.'],
    ['nothing', '', 'It returned nothing that can be a claim: an object is needed.'],
    ['a function', 'return () => 1', 'It returned nothing that can be a claim: an object is needed.'],
    ['itself', 'const a = {}; a.a = a; return a', { failed: 'result', message: 'TypeError: circular reference' }],
    ['a BigInt', 'return { n: 1n }', { failed: 'result', message: expect.stringMatching(/^TypeError: BigInt/) }],
    [
      '1 MB',
      'return { text: "x".repeat(1e6) }',
      { failed: 'result', message: 'It returned more than 16384 bytes of JSON.' },
    ],
    ['more bytes than characters', 'return { text: "ü".repeat(1e4) }', 'It returned more than 16384 bytes of JSON.'],
    [
      '1 000 levels',
      'let a = {}; for (let n = 0; n < 1000; n++) a = { a }; return a',
      'It returned something nested more than 8 deep.',
    ],
    [
      'a getter that throws',
      'return { get a() { throw new Error("no") } }',
      { failed: 'result', message: 'Error: no (line 2)' },
    ],
    [
      'a proxy that throws',
      'return new Proxy({}, { ownKeys() { throw 1 } })',
      { failed: 'result', message: 'It threw 1' },
    ],
  ])('%s cannot be claims', async (_, body, expected) => {
    expect(await wrong(body)).toEqual(expected)
  })

  test('eight levels can, nine cannot', async () => {
    const levels = (count: number) => `let a = {}; for (let n = 1; n < ${count}; n++) a = { a }; return a`
    expect(await wrong(levels(8))).toHaveProperty('claims')
    expect(await wrong(levels(9))).toBe('It returned something nested more than 8 deep.')
  })

  test.each([
    ['a thenable is waited for', 'return { then: (resolve) => resolve({ a: 1 }) }', { claims: { a: 1 }, dropped: [] }],
    [
      'a proxy is what it shows',
      'return new Proxy({}, { ownKeys: () => ["a"], getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }), get: () => 1 })',
      { claims: { a: 1 }, dropped: [] },
    ],
    [
      'numbers that JSON has not are null',
      'return { a: NaN, b: Infinity, c: -0 }',
      { claims: { a: null, b: null, c: 0 }, dropped: [] },
    ],
    [
      'an array that says it is an object is one',
      'const a = [1]; a.toJSON = () => ({ a: 1 }); return a',
      { claims: { a: 1 }, dropped: [] },
    ],
  ])('%s', async (_, body, expected) => {
    const outcome = await run(body)
    expect('returned' in outcome ? checkResult(outcome.returned) : { wrong: JSON.stringify(outcome) }).toEqual(expected)
  })

  test('names that would reach into objects are left out, at every level', async () => {
    const text = '{"__proto__":{"admin":true},"constructor":{"prototype":{"a":1}},"list":[{"__proto__":{"b":1},"c":1}]}'
    expect(await wrong(`return JSON.parse('${text}')`)).toEqual({
      claims: { list: [{ c: 1 }] },
      dropped: ['__proto__', 'constructor', '__proto__'],
    })
    expect({}).not.toHaveProperty('admin')
  })
})

describe('limits', () => {
  const cpu = { failed: 'cpu', message: 'It took more than 100 ms of processor time.' }

  test.each([
    ['an endless loop', 'for (;;);'],
    ['an endless loop in what is caught', 'for (;;) try { for (;;); } catch {} finally { for (;;); }'],
    ['a pattern that backtracks', '/^(a+)+$/.test("a".repeat(40) + "b")'],
    ['promises without end', 'const go = () => Promise.resolve().then(go); await go()'],
    [
      'promises that multiply',
      'const go = () => { Promise.resolve().then(go); return Promise.resolve().then(go) }; await go()',
    ],
    ['an endless getter of an error', 'throw { get message() { for (;;); } }'],
    ['an endless toJSON', 'return { toJSON() { for (;;); } }'],
  ])('%s ends with the time', async (_, body) => {
    expect(await run(body)).toEqual(cpu)
  })

  test('so does one outside of the function', async () => {
    const call = { ...callOf(''), script: 'for (;;);' }
    expect((await sandbox.run(call)).outcome).toEqual(cpu)
  })

  test('a promise that never settles is told at once', async () => {
    expect(await run('await new Promise(() => {})')).toEqual({
      failed: 'unsettled',
      message: 'It waits for a promise that nothing settles.',
    })
  })

  test.each([
    ['arrays', 'const a = []; for (;;) a.push(new Array(1e4).fill(0))'],
    ['typed arrays', 'const a = []; for (;;) a.push(new Uint8Array(1e5))'],
    ['one array', 'new Array(1e7).fill(0)'],
    ['buffers', 'return { a: new ArrayBuffer(1e9) }'],
    ['text', 'const a = []; for (;;) a.push("x".repeat(1e5) + a.length)'],
  ])('a bomb of %s is out of memory', async (_, body) => {
    expect(await run(body)).toMatchObject({ failed: expect.stringMatching(/^(memory|cpu)$/) })
  })

  test('recursion and nesting without end are errors', async () => {
    expect(await run('const f = () => f() + 1; f()')).toMatchObject({
      failed: 'error',
      message: expect.stringMatching(/^RangeError/),
    })
    expect(await run('JSON.parse("[".repeat(1e5))')).toMatchObject({ failed: expect.any(String) })
  })

  test.each([
    ['numbers', 'let n = 3n ** 600000n; for (let i = 0; i < 50; i++) n = (n * n) % (7n ** 300000n)'],
    ['texts', 'const text = "a".repeat(3e6); for (;;) text.includes("a".repeat(1e6) + "b")'],
    ['arrays', 'const all = []; all.length = 4294967295; all.includes(1)'],
    ['objects', 'let a = []; for (let n = 0; n < 1e5; n++) a = [a]; return { a }'],
  ])('one long step with %s is ended with its thread, and fails nobody else', async (_, body) => {
    const own = await ownSandbox()
    const native = run(`${body}; return {}`, own)
    const honest = await Promise.all(Array.from({ length: 20 }, () => run('return { a: 1 }', own)))
    expect(honest).toEqual(Array(20).fill({ returned: '{"a":1}' }))
    expect(await native).toEqual(cpu)
    expect(await run('return { a: 2 }', own)).toEqual({ returned: '{"a":2}' })
  })

  test('waiting without end is ended by the clock, and its thread replaced', async () => {
    const own = await ownSandbox({ workers: 1, limits: { wallMs: 300 }, fetch: () => new Promise(() => {}) })
    expect(await run('await fetch("https://users.test")', own)).toEqual({
      failed: 'wall',
      message: 'It took more than 300 ms.',
    })
    const again = async () => run('return { a: 2 }', own)
    await expect.poll(again, { timeout: 20_000 }).toEqual({ returned: '{"a":2}' })
  })

  test('a thread that is killed in mid-call fails that call alone', async () => {
    const workers: Worker[] = []
    const own = await ownSandbox({
      workers: 1,
      limits: { cpuMs: 60_000 },
      onThread: (worker) => workers.push(worker),
    })
    const killed = run('for (;;);', own)
    const waiting = Array.from({ length: 5 }, () => run('return { a: 1 }', own))
    await workers[0]!.terminate()
    expect(await killed).toEqual({ failed: 'stopped', message: 'Its thread ended.' })
    expect(await Promise.all(waiting)).toEqual(Array(5).fill({ returned: '{"a":1}' }))
  })

  test('more than can wait is refused at once, and nobody is forgotten', async () => {
    const own = await ownSandbox({ queue: 50 })
    const outcomes = await Promise.all(Array.from({ length: 200 }, () => run('return {}', own)))
    const done = outcomes.filter((outcome) => 'returned' in outcome)
    const busy = outcomes.filter((outcome) => 'failed' in outcome && outcome.failed === 'busy')
    expect(done.length + busy.length).toBe(200)
    expect(done.length).toBeGreaterThanOrEqual(50)
    expect(busy.length).toBeGreaterThan(0)
  })

  test('who waits too long is told so', async () => {
    const own = await ownSandbox({ workers: 1, waitTimeoutMs: 50, limits: { cpuMs: 400 } })
    const slow = run('for (;;);', own)
    expect(await run('return {}', own)).toMatchObject({ failed: 'busy' })
    expect(await slow).toMatchObject({ failed: 'cpu' })
  })
})

describe('one owner and the others', () => {
  test('an owner whose calls run away is served apart; the others wait for none of them', async () => {
    const own = await ownSandbox({ workers: 1 })
    const order: string[] = []
    const call = async (owner: string, body: string) => {
      await run(body, own, owner)
      order.push(owner)
    }
    await call('hostile', 'for (;;);')
    const hostile = Array.from({ length: 2 }, () => call('hostile', 'for (;;);'))
    const honest = Array.from({ length: 50 }, () => call('honest', 'return {}'))
    await Promise.all([...hostile, ...honest])
    // One thread for those who stay within the limits: had it been given a single runaway, all would have waited for
    // it.
    expect(order.slice(1, 40)).toEqual(Array(39).fill('honest'))
  })

  test('after a call that ran away, calls of its owner wait; a trial and another owner apart do not', async () => {
    // It rests for 20 times as long as it may take: 6 s.
    const own = await ownSandbox({ workers: 1, limits: { cpuMs: 300 }, waitTimeoutMs: 60_000 })
    const cpu = expect.objectContaining({ failed: 'cpu' })
    for (const owner of ['one', 'other']) expect(await run('for (;;);', own, owner)).toEqual(cpu)
    expect(await run('for (;;);', own, 'one')).toEqual(cpu)
    const order: string[] = []
    const resting = run('return {}', own, 'one').finally(() => order.push('one'))
    expect(await run('return { a: 1 }', own, 'other')).toEqual({ returned: '{"a":1}' })
    const trial = await own.run({ ...callOf('return { a: 2 }'), isTrial: true })
    expect(trial.outcome).toEqual({ returned: '{"a":2}' })
    expect(order).toEqual([])
    await own.close()
    expect(await resting).toMatchObject({ failed: 'busy' })
  })

  test('an owner apart has one call at a time', async () => {
    let waiting = 0
    let most = 0
    const own = await ownSandbox({
      workers: 4,
      fetch: async () => {
        most = Math.max(most, ++waiting)
        await new Promise((resolve) => setImmediate(resolve))
        waiting--
        return { status: 200, headers: {}, body: '' }
      },
    })
    expect(await run('for (;;);', own, 'suspect')).toMatchObject({ failed: 'cpu' })
    const calls = Array.from({ length: 10 }, () => run('await fetch("https://users.test"); return {}', own, 'suspect'))
    expect(await Promise.all(calls)).toEqual(Array(10).fill({ returned: '{}' }))
    expect(most).toBe(1)
  })

  test('an owner whose calls are slow, though they stay within the limits, is served apart and told of once', async () => {
    const apart: string[] = []
    const own = await ownSandbox({
      slowMs: 5,
      limits: { cpuMs: 10_000 },
      onPenalty: (owner) => apart.push(owner),
    })
    const slow = 'for (let n = 0; n < 1e6; n++); return {}'
    for (let n = 0; n < 6; n++) expect(await run(slow, own, 'slow')).toEqual({ returned: '{}' })
    expect(await run('return {}', own, 'quick')).toEqual({ returned: '{}' })
    expect(apart).toEqual(['slow'])
  })

  test('many calls of one owner do not make another owner wait for all of them', async () => {
    const own = await ownSandbox({ workers: 1 })
    let done = 0
    const many = Array.from({ length: 100 }, () => run('return {}', own, 'busy').then(() => done++))
    await run('return {}', own, 'quiet')
    expect(done).toBeLessThan(10)
    await Promise.all(many)
  })

  test('hostile calls do not let the memory of the process grow without end', async () => {
    const own = await ownSandbox()
    const bomb = 'const a = []; for (;;) a.push("x".repeat(1e5) + a.length)'
    const bombs = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, n) => run(bomb, own, `owner ${n} of ${count}`)))
    await bombs(10)
    const before = process.memoryUsage().rss
    await bombs(60)
    // In bytes: each of them took 8 MB.
    expect(process.memoryUsage().rss - before).toBeLessThan(150e6)
  }, 60_000)
})

describe('what it tells', () => {
  test('values of environment variables are in no message and no log', async () => {
    const { outcome, logs } = await sandbox.run(
      callOf('console.log("with", environmentVariables, 1); throw new Error(`of ${environmentVariables.KEY} on`)'),
    )
    expect(outcome).toEqual({ failed: 'error', message: 'Error: of [KEY] on (line 2)' })
    expect(logs).toEqual(['with {"KEY":"[KEY]","SHORT":"on"} 1'])
    expect(await run('api.denyAccess(environmentVariables.KEY)')).toEqual({ denied: '[KEY]' })
  })

  test('the console takes twenty lines of it, also of values that write to it themselves, and no text without end', async () => {
    const { logs } = await sandbox.run(
      callOf('const all = { toJSON() { console.log(all); return 1 } }; console.log(all); return {}'),
    )
    expect(logs).toEqual(Array(20).fill('1'))
    const long = await sandbox.run(callOf('console.log("x".repeat(1e6)); throw new Error("x".repeat(1e6))'))
    expect(long).toMatchObject({
      outcome: { failed: 'error', message: '(a text of 1000016 characters)' },
      logs: ['(a text of 1000000 characters)'],
    })
    // More than its thread may hold.
    const much = 'const text = "ä€".repeat(3e4); for (;;) console.log(...Array(1e3).fill(text))'
    expect(await run(much)).toEqual({ failed: 'cpu', message: 'It took more than 100 ms of processor time.' })
  })

  test('long messages are cut after the values are out of them', async () => {
    const outcome = await run('throw new Error((environmentVariables.KEY + "-").repeat(1000))')
    expect(JSON.stringify(outcome)).not.toContain('sekret')
    expect(JSON.stringify(outcome).length).toBeLessThan(600)
  })

  test.each([
    ['text', 'throw "text"', 'It threw text'],
    ['nothing', 'throw undefined', 'It threw undefined'],
    ['an object', 'throw { a: 1 }', 'Error: undefined'],
    ['a symbol', 'throw Symbol("s")', 'It threw Symbol(s)'],
    ['an error of its own', 'class Mine extends Error { name = "Mine" }; throw new Mine("why")', 'Mine: why (line 2)'],
    [
      'an error that tells of memory',
      'throw new Error("upstream: out of memory")',
      'Error: upstream: out of memory (line 2)',
    ],
    ['a proxy', 'throw new Proxy({}, {})', 'Error: undefined'],
    [
      'a proxy that throws when it is looked at',
      'throw new Proxy({}, { get() { throw new TypeError("no") } })',
      'TypeError: no (line 2)',
    ],
    [
      'a proxy that throws itself when it is looked at',
      'const proxy = new Proxy({}, { get() { throw proxy } }); throw proxy',
      'It threw what cannot be shown.',
    ],
    [
      'a proxy that was revoked',
      'const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); throw proxy',
      expect.stringMatching(/^TypeError: .*revoked/),
    ],
    ['an error whose message is none', 'throw { message: Object.create(null) }', expect.stringMatching(/^TypeError: /)],
  ])('%s that is thrown is told', async (_, body, message) => {
    expect(await run(body)).toEqual({ failed: 'error', message })
  })

  test('a script without the function, or that cannot be read, says so', async () => {
    const of = async (script: string) => (await sandbox.run({ ...callOf(''), script })).outcome
    expect(await of('const other = 1')).toEqual({
      failed: 'error',
      message: 'It does not define the function getCustomJwtClaims.',
    })
    expect(await of('const getCustomJwtClaims = 1')).toMatchObject({
      message: expect.stringMatching(/does not define/),
    })
    expect(await of('const getCustomJwtClaims = (')).toMatchObject({
      failed: 'error',
      message: expect.stringMatching(/^SyntaxError/),
    })
    expect(await of('function getCustomJwtClaims() { return { plain: true } }')).toEqual({ returned: '{"plain":true}' })
  })
})
