import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readBundle } from '../../../policies/engine/bundle/bundle.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa, runOpa } from '../../../policies/engine/compile/opa.ts'
import { createWasmEngine } from '../../../policies/engine/evaluate/engine.ts'
import { goJson } from '../../../policies/engine/go/json.ts'
import { parseValue } from '../../../policies/engine/values/text.ts'
import type { RegoObject, Value } from '../../../policies/engine/values/value.ts'

/**
 * What Rego expressions are: `expression = value` as JSON with sets in order, or `= undefined`. All are compiled and
 * asked at once.
 */
export const ours = async (expressions: readonly string[]): Promise<string[]> => {
  const sources = new Map([['test.rego', new TextEncoder().encode(moduleOf(expressions))]])
  const { wasm, data } = readBundle(await compilePolicies({ sources, opa: await findOpa() }))
  // All of them in one evaluation.
  const engine = await createWasmEngine({ wasm, data, limits: { units: 1_000_000_000 } })
  return listed(expressions, engine.evaluateExactly('test/decision', undefined))
}

/** The same from OPA's own interpreter. */
export const theirs = async (expressions: readonly string[]): Promise<string[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-opa-'))
  try {
    await writeFile(join(folder, 'test.rego'), moduleOf(expressions))
    const { stdout, stderr } = await runOpa(await findOpa(), ['eval', '-d', folder, '-f', 'json', 'data.test.decision'])
    const [result] = ((parseValue(stdout) as RegoObject).get('result') as RegoObject[] | undefined) ?? []
    if (!result) throw new Error(stdout + stderr)
    return listed(expressions, (result.get('expressions') as RegoObject[])[0]!.get('value'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const moduleOf = (expressions: readonly string[]): string => {
  const rules = expressions.map((expression, index) => `answers[${index}] := ${expression}`)
  return ['package test', '# METADATA\n# entrypoint: true\ndecision := answers', ...rules].join('\n\n')
}

const listed = (expressions: readonly string[], answers: Value | undefined): string[] => {
  const members = new Map([...(answers as RegoObject)].map(([key, value]) => [String(key), value]))
  return expressions.map((expression, index) => {
    const value = members.get(String(index))
    return `${expression} = ${value === undefined ? 'undefined' : goJson(value)}`
  })
}
