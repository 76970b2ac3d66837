import type { Contradiction } from './contradictions.ts'
import type { GatewayFile } from './settings/file.ts'
import { workersOf } from './worker-count.ts'

/** Of the decisions that one worker keeps, in bytes. */
const leastKept = 1_048_576

/** Mistakes between `inspection` and the rest of the file. */
export const inspectionContradictions = (file: GatewayFile): Contradiction[] => {
  const { inspection, issuers } = file
  if (!inspection) return []
  const found: Contradiction[] = []
  const report = (path: PropertyKey[], message: string) => void found.push({ path: ['inspection', ...path], message })
  if (issuers.length === 0) report(['audience'], 'needs an issuer, whose tokens inspect')
  if (!inspection.issuers && issuers.length > 1) {
    report([], 'issuers is needed: the file has more than one issuer, and not each need vouch for who inspects')
  }
  for (const [index, name] of (inspection.issuers ?? []).entries()) {
    if (!issuers.some(({ issuer }) => issuer === name)) report(['issuers', index], `there is no issuer ${name}`)
  }
  const shared = file.routes.find(({ audience }) => audience.includes(inspection.audience))
  if (shared) report(['audience'], `is an audience of the route ${shared.id}: tokens for an API must not inspect`)
  const { path, bundle, verify } = file.policies
  if (inspection.savePolicies && (path === undefined || bundle !== undefined || verify)) {
    report(['savePolicies'], 'needs policies.path, a folder of rules: neither a bundle nor signatures')
  }
  if (inspection.keep < leastKept * workersOf(file)) {
    report(['keep'], `is divided among the ${workersOf(file)} workers: must be at least 1MB for each`)
  }
  return found
}
