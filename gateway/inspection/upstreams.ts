import { z } from 'zod'
import type { HealthResult } from '../../platform/health.ts'
import type { GatewayConfig } from '../config/load.ts'
import type { Upstream } from '../upstream/upstream.ts'

/** The member `gateway` of `/inspect`: what answers for each upstream, and how it is. */
export const gatewayInspection = z.object({
  /** Of gateway.yaml, as it runs. */
  revision: z.string(),
  upstreams: z.array(
    z.object({
      name: z.string(),
      balance: z.union([z.literal(['least-requests', 'round-robin']), z.object({ hash: z.string() })]),
      running: z.number(),
      /** Whether all targets are used because too many would be out. */
      overdrawn: z.boolean(),
      targets: z.array(
        z.object({
          name: z.string(),
          labels: z.record(z.string(), z.string()),
          weight: z.number(),
          state: z.enum(['in', 'out', 'used']),
          health: z.enum(['healthy', 'unhealthy', 'unknown']),
          reason: z.string().optional(),
          ejectedForMs: z.number().optional(),
          ejections: z.number(),
          share: z.number(),
          running: z.number(),
          answered: z.number(),
          failed: z.number(),
          neither: z.number(),
        }),
      ),
      names: z.array(z.object({ host: z.string(), addresses: z.array(z.string()), problem: z.string().optional() })),
    }),
  ),
})

export type GatewayInspection = z.output<typeof gatewayInspection>

export const inspectGateway = (
  { revision, upstreams: settings }: GatewayConfig,
  upstreams: ReadonlyMap<string, Upstream>,
): GatewayInspection => ({
  revision,
  upstreams: [...upstreams].map(([name, { targets, activeRequests }]) => ({
    name,
    balance: settings[name]!.balance as GatewayInspection['upstreams'][number]['balance'],
    running: activeRequests.size,
    overdrawn: targets.isOverdrawn(),
    targets: targets.states().map((state) => ({ ...state, labels: { ...state.labels } })),
    names: targets.names().map(({ host, addresses, problem }) => ({
      host,
      addresses: [...addresses],
      ...(problem !== undefined && { problem }),
    })),
  })),
})

/** For `/readyz`: of upstreams with several targets, or whose targets are watched. One that is down stops no other. */
export const targetChecks = (upstreams: ReadonlyMap<string, Upstream>): Record<string, () => HealthResult> =>
  Object.fromEntries(
    [...upstreams]
      .filter(([, { targets }]) => targets.hasStates)
      .map(([name, { targets }]) => [`targets ${name}`, () => ({ ok: true, detail: detailOf(targets) })]),
  )

const detailOf = (targets: Upstream['targets']): string => {
  const states = targets.states()
  const bad = states.filter(({ state }) => state !== 'in')
  const unresolved = targets.names().filter(({ problem }) => problem !== undefined)
  return [
    `${states.length - bad.length} of ${states.length} well`,
    ...(targets.isOverdrawn() ? ['all are used, since too many would be out'] : []),
    ...bad.map(({ name, health, reason }) =>
      health === 'unhealthy' ? `${name} fails its checks (${reason ?? 'not checked again yet'})` : `${name} is ejected`,
    ),
    ...unresolved.map(({ host, problem }) => `${host} cannot be resolved (${problem}): its last addresses are used`),
  ].join('; ')
}
