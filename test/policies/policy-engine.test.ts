import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { compilePolicies, findOpa, publishBundle } from '../../policies/engine/index.ts'
import { loadPolicy, PolicyError } from '../../policies/policy-engine.ts'

/** The engine as programs import it: `surrogate/policy-engine`. */

const rules = `package example

# METADATA
# entrypoint: true
default allow := false

allow if input.user in data.staff

# METADATA
# entrypoint: true
triple := count([1 | some a in input.list; some b in input.list; some c in input.list; a + b + c == -1])

# METADATA
# entrypoint: true
hoard := count([[a, b, c] | some a in input.list; some b in input.list; some c in input.list])

# METADATA
# entrypoint: true
told := input.text

# METADATA
# entrypoint: true
contradiction := n if some n in input.list

# METADATA
# entrypoint: true
printed if print(input.text)
`

const list = Array.from({ length: 300 }, (_, n) => n)

let bundle: Uint8Array
beforeAll(async () => {
  const encode = (text: string) => new TextEncoder().encode(text)
  const sources = new Map([
    ['example.rego', encode(rules)],
    ['data.json', encode('{"staff":["alice"]}')],
  ])
  bundle = await compilePolicies({ sources, opa: await findOpa() })
})

/** The code and the message of what is thrown. */
const thrownBy = async (use: () => unknown): Promise<{ code: string; message: string }> => {
  try {
    await use()
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    return { code: error.code, message: error.message }
  }
  throw new Error('nothing was thrown')
}

test('a bundle is loaded from a file, its address or its bytes, with its documents or with others', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-policy-engine-'))
  try {
    const file = join(folder, 'bundle.tar.gz')
    await writeFile(file, bundle)
    for (const from of [file, pathToFileURL(file), bundle]) {
      const policy = await loadPolicy(from)
      expect(policy.entrypoints).toContain('example/allow')
      expect(policy.revision).not.toBe('')
      expect(policy.evaluate('example/allow', { user: 'alice' })).toBe(true)
      expect(policy.evaluate('example/allow')).toBe(false)
      expect(policy.evaluate('example/told', {})).toBeUndefined()
    }
    const other = await loadPolicy(file, { data: { staff: ['bob'] } })
    expect(['alice', 'bob'].map((user) => other.evaluate('example/allow', { user }))).toEqual([false, true])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('what cannot be used is told as invalid, where it is given', async () => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const verification = { keys: new Map([['release', { algorithm: 'ES256' as const, key: publicKey }]]) }
  const policy = await loadPolicy(bundle, { input: 1_000 })
  const attempts = {
    'no file': () => loadPolicy('/nowhere/bundle.tar.gz'),
    'no bundle': () => loadPolicy(new TextEncoder().encode('not a bundle')),
    unsigned: () => loadPolicy(bundle, { verification }),
    'no entrypoint': () => policy.evaluate('example/nothing'),
    'too large': () => policy.evaluate('example/told', { text: 'x'.repeat(1_000) }),
    'not JSON': () => policy.evaluate('example/told', { text: 1n }),
  }
  for (const [name, attempt] of Object.entries(attempts)) {
    expect({ name, code: (await thrownBy(attempt)).code }).toEqual({ name, code: 'invalid' })
  }
})

test('a signed bundle is taken, and one that was signed by somebody else is not', async () => {
  const [ours, theirs] = [0, 1].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }))
  const signed = publishBundle(bundle, { key: { keyId: 'release', algorithm: 'ES256', key: ours!.privateKey } })
  const from = (key: typeof ours) => ({
    keys: new Map([['release', { algorithm: 'ES256' as const, key: key!.publicKey }]]),
  })
  const policy = await loadPolicy(signed, { verification: from(ours) })
  expect(policy.evaluate('example/allow', { user: 'alice' })).toBe(true)
  expect(await thrownBy(() => loadPolicy(signed, { verification: from(theirs) }))).toMatchObject({ code: 'invalid' })
})

describe('an evaluation ends', () => {
  const cases = [
    { entrypoint: 'triple', options: {}, code: 'units_used_up' },
    { entrypoint: 'hoard', options: { memory: 1_048_576, units: 2_000_000_000 }, code: 'memory_used_up' },
    { entrypoint: 'contradiction', options: {}, code: 'failed' },
    { entrypoint: 'told', options: { result: 100 }, code: 'failed' },
  ]
  test.each(cases)('$entrypoint: $code, and the next one answers', async ({ entrypoint, options, code }) => {
    const policy = await loadPolicy(bundle, options)
    for (let round = 0; round < 3; round++) {
      const thrown = await thrownBy(() => policy.evaluate(`example/${entrypoint}`, { list, text: 'x'.repeat(200) }))
      expect(thrown.code).toBe(code)
      expect(policy.unitsTaken()).toBeGreaterThan(0)
      expect(policy.evaluate('example/allow', { user: `alice${round}` })).toBe(false)
    }
  })
})

test('units are the same each time, and answers from memory take none', async () => {
  const units = async () => {
    const policy = await loadPolicy(bundle)
    policy.evaluate('example/allow', { user: 'alice' })
    return policy.unitsTaken()
  }
  expect(await units()).toBe(await units())
  const policy = await loadPolicy(bundle)
  policy.evaluate('example/allow', { user: 'alice' })
  policy.evaluate('example/allow', { user: 'alice' })
  expect(policy.unitsTaken()).toBe(0)
})

test('lines that rules print go to whoever asks for them', async () => {
  const lines: string[] = []
  const policy = await loadPolicy(bundle, { print: (line) => lines.push(line) })
  policy.evaluate('example/printed', { text: 'hello' })
  expect(lines).toEqual(['hello'])
})

test('in threads the limits hold too, and errors say what happened', async () => {
  const policy = await loadPolicy(bundle, { input: 100_000, result: 100_000 })
  const isolation = await policy.startIsolation({ workers: 1, units: 1_000_000 })
  try {
    expect(await isolation.evaluate('example/allow', { user: 'alice' })).toBe(true)
    const text = 'x'.repeat(90_000)
    expect(await isolation.evaluate('example/told', { text })).toBe(text)
    const { code } = await thrownBy(() => isolation.evaluate('example/contradiction', { list }))
    expect(code).toBe('failed')
    expect((await thrownBy(() => isolation.evaluate('example/triple', { list }))).code).toBe('units_used_up')
  } finally {
    await isolation.close()
  }
  expect((await thrownBy(() => isolation.evaluate('example/told', {}))).code).toBe('busy')
  expect(policy.evaluate('example/allow', { user: 'alice' })).toBe(true)
})
