import type { Contradiction } from './contradictions.ts'
import type { GatewayFile } from './settings/file.ts'

/** Mistakes between `extAuthz` and other members. */
export const extAuthzContradictions = (file: GatewayFile): Contradiction[] => {
  const { extAuthz, forwardAuth, trustedProxies, forwardedBy } = file
  if (!extAuthz) return []
  const found: Contradiction[] = []
  const report = (path: string[], message: string) => void found.push({ path: ['extAuthz', ...path], message })
  if (trustedProxies.length === 0) report([], 'needs trustedProxies: only they get decisions')
  if (forwardedBy === 'forwarded') {
    found.push({ path: ['forwardedBy'], message: 'ext_authz reads X-Forwarded-For, which Envoy writes' })
  }
  if (forwardAuth && JSON.stringify(forwardAuth.pathEquality) !== JSON.stringify(extAuthz.pathEquality)) {
    report(['pathEquality'], 'must be that of forwardAuth: the routes without upstream are the same')
  }
  return found
}
