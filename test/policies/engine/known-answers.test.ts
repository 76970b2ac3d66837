import { expect, test } from 'vitest'
import { readBundle } from '../../../policies/engine/bundle/bundle.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { createWasmEngine } from '../../../policies/engine/evaluate/engine.ts'
import { createKnownAnswers } from '../../../policies/engine/evaluate/known-answers.ts'

const engineOf = async (rule: string, options: { now?: () => number; print?: (line: string) => void } = {}) => {
  const text = `package test\n\n# METADATA\n# entrypoint: true\n${rule}\n`
  const sources = new Map([['test.rego', new TextEncoder().encode(text)]])
  const { wasm, data, built } = readBundle(await compilePolicies({ sources, opa: await findOpa() }))
  const engine = await createWasmEngine({ wasm, data, reads: built?.reads, ...options })
  return (input: unknown) => engine.evaluate('test/decision', input)
}

test('the answer to the same input is the same, and nobody can change it for others', async () => {
  const decide = await engineOf('decision := {"allow": input.a == 1, "log": {"a": input.a}}')
  for (let round = 0; round < 3; round++) {
    const answer = decide({ a: 1, unread: round }) as { allow: boolean; log: { a: number } }
    expect(answer).toEqual({ allow: true, log: { a: 1 } })
    answer.allow = false
    answer.log.a = 2
  }
  expect(decide({ a: 2 })).toEqual({ allow: false, log: { a: 2 } })
  expect(decide({ a: '1' })).toEqual({ allow: false, log: { a: '1' } })
  expect(decide({})).toBeUndefined()
  expect(decide({})).toBeUndefined()
})

test('a rule that looks at the clock is asked every time', async () => {
  let time = 1_000
  const decide = await engineOf('decision := {"allow": time.now_ns() < 2000000000}', { now: () => time })
  expect(decide({})).toEqual({ allow: true })
  time = 2_000
  expect(decide({})).toEqual({ allow: false })
})

test('a rule that looks at the clock only sometimes is asked again wherever it did', async () => {
  let time = 1_000
  const rule = 'decision := {"allow": true} if input.trusted\nelse := {"allow": time.now_ns() < 2000000000}'
  const decide = await engineOf(rule, { now: () => time })
  expect([decide({ trusted: true }), decide({ trusted: false })]).toEqual([{ allow: true }, { allow: true }])
  time = 2_000
  expect([decide({ trusted: true }), decide({ trusted: false })]).toEqual([{ allow: true }, { allow: false }])
})

test('a rule that prints prints every time', async () => {
  const lines: string[] = []
  const decide = await engineOf('decision := true if print("asked")', { print: (line) => lines.push(line) })
  for (let round = 0; round < 2; round++) expect(decide({})).toBe(true)
  expect(lines).toEqual(['asked', 'asked'])
})

test('long texts are not kept', () => {
  const known = createKnownAnswers()
  known.set('x'.repeat(5_000), '[]')
  known.set('x', '[]')
  expect([known.get('x'.repeat(5_000)), known.get('x')]).toEqual([undefined, '[]'])
})

test('inputs that never repeat are soon not remembered, ones that do are again later', () => {
  const known = createKnownAnswers()
  const ask = (input: string) => {
    const answer = known.get(input)
    if (answer === undefined) known.set(input, '[]')
    return answer
  }
  for (let index = 0; index <= 1_000; index++) ask(`unique ${index}`)
  ask('again')
  expect(ask('again')).toBeUndefined()
  for (let index = 0; index < 100_000; index++) ask('again')
  expect(ask('again')).toBe('[]')
})
