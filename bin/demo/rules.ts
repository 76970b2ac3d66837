import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { assetUrl } from '../../platform/module-url.ts'
import { shippedPolicies } from '../../policies/decide.ts'
import type { Sources } from '../../policies/engine/index.ts'

/**
 * The rules of the demo's issuer, as a bundle, so that the published package needs no compiler for them:
 * `surrogate policy generate` makes it of `demoRules`.
 */
export const demoRulesFile = fileURLToPath(assetUrl('./rules.tar.gz', import.meta.url))

const files = ['impersonation.rego', 'examples/impersonation/approval_for_protected_customers.rego']

/** What ships, and the sample by which some customers are asked first. */
export const demoRules = async (): Promise<Sources> =>
  new Map(await Promise.all(files.map(async (file) => [file, await readFile(join(shippedPolicies, file))] as const)))
