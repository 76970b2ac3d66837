import { access, chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ruleCoverage } from '../../../policies/authoring/coverage.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { ruleFolder } from '../rule-folder.ts'

/**
 * The compiler, whose runs with `slow` among their arguments begin when one with `quick` among its own has ended, and
 * take a second more. Each notes its end in `ended`.
 */
const slowCompiler = async ({ slow, quick }: { slow: string; quick: string }) => {
  const folder = await ruleFolder({})
  const [opa, quickEnded, slowEnded] = ['opa', 'quick', 'slow'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const script = `#!/bin/sh
case " $* " in
  *" ${slow} "*) while [ ! -e ${quickEnded} ]; do sleep 0.01; done; sleep 1; ended=${slowEnded} ;;
  *" ${quick} "*) ended=${quickEnded} ;;
  *) ended=/dev/null ;;
esac
"${await findOpa()}" "$@"
code=$?
echo ended >> $ended
exit $code
`
  await writeFile(opa, script)
  await chmod(opa, 0o755)
  const hasEnded = (note: string) =>
    access(note).then(
      () => true,
      () => false,
    )
  return { opa, slowHasEnded: () => hasEnded(slowEnded) }
}

const sourcesOf = (text: string) => new Map([['a.rego', new TextEncoder().encode(text)]])

test.each([
  { slow: 'wasm', quick: 'plan' },
  { slow: 'plan', quick: 'wasm' },
])('a compile that failed takes its files away when nobody writes them any more: $slow is slow', async (order) => {
  const { opa, slowHasEnded } = await slowCompiler(order)
  const sources = sourcesOf('package test\n\n# METADATA\n# entrypoint: true\ndecision := nonsense\n')
  await expect(compilePolicies({ sources, opa })).rejects.toThrow(
    /^the policies do not compile: a\.rego:5:13: var nonsense is unsafe$/,
  )
  expect(await slowHasEnded()).toBe(true)
})

test('so does a coverage that cannot be found', async () => {
  const { opa, slowHasEnded } = await slowCompiler({ slow: 'test', quick: 'eval' })
  const sources = sourcesOf('package a\n\nx := nonsense\n')
  const questions = [{ entrypoint: 'a/x', input: {} }]
  await expect(ruleCoverage({ sources, opa, questions })).rejects.toThrow(/^the coverage of the rules cannot be found/)
  expect(await slowHasEnded()).toBe(true)
})
