import type { GatewayConfig } from '../config/load.ts'

export interface Place {
  /** From 1 to `of`. */
  worker: number
  of: number
}

/** The part of a whole number that is one worker's: all of them together have exactly `total`. */
const part = (total: number, { worker, of }: Place): number => Math.floor(total / of) + (worker <= total % of ? 1 : 0)

/** What a worker may use of a configuration: limits that count what is here now are divided among all. */
export const shareOf = (config: GatewayConfig, place: Place): GatewayConfig => ({
  ...config,
  inspection: config.inspection && { ...config.inspection, keep: part(config.inspection.keep, place) },
  limits: {
    ...config.limits,
    refusedTokens: part(config.limits.refusedTokens, place),
    policyBodies: part(config.limits.policyBodies, place),
  },
  upstreams: Object.fromEntries(
    Object.entries(config.upstreams).map(([name, upstream]) => [
      name,
      {
        ...upstream,
        maxRequests: part(upstream.maxRequests, place),
        maxWebSockets: part(upstream.maxWebSockets, place),
      },
    ]),
  ),
})
