import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { shippedPolicies } from '../../policies/decide.ts'
import { compilePolicies, suppliedCapabilities } from '../../policies/engine/index.ts'
import { inputSchemas } from '../../policies/schemas.ts'
import { demoRules, demoRulesFile } from '../demo/rules.ts'
import { buildBundle } from './build.ts'
import type { Invocation } from './invocation.ts'

/** For maintainers of Surrogate, after a change of OPA, of the built-in functions or of the input. */
export const generatePolicies = async ({ opa, say, ...invocation }: Invocation): Promise<number> => {
  const binary = await opa()
  const files = {
    'engine/capabilities.json': await suppliedCapabilities(binary),
    'input-schema.json': inputSchemas.gateway,
    'signin-input-schema.json': inputSchemas.signin,
  }
  for (const [name, content] of Object.entries(files)) {
    const before = await readFile(join(shippedPolicies, name), 'utf8').catch(() => 'null')
    if (JSON.stringify(JSON.parse(before)) === JSON.stringify(content)) continue
    await writeFile(join(shippedPolicies, name), `${JSON.stringify(content, null, 2)}\n`)
    say(`${name} changed; format it with "npm run format"`)
  }
  await writeFile(demoRulesFile, await compilePolicies({ sources: await demoRules(), opa: binary }))
  return buildBundle({ ...invocation, path: shippedPolicies, opa, say })
}
