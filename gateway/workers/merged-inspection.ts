import type { HealthResult } from '../../platform/health.ts'
import type { GatewayConfig } from '../config/load.ts'
import { type GatewayInspection, targetsDetail } from '../inspect.ts'
import { hasStates } from '../upstream/targets/targets.ts'
import type { WorkerProcess } from './fork-worker.ts'

type Upstream = GatewayInspection['upstreams'][number]
type Target = Upstream['targets'][number]

/** What all workers together tell of their upstreams. */
export interface WorkersInspection {
  read(): Promise<GatewayInspection>
  /** Lines of `/readyz`, by the name of the check. */
  checks(config: GatewayConfig): Record<string, () => Promise<HealthResult>>
}

export const createWorkersInspection = (options: {
  /** Those that serve. */
  workers: () => readonly WorkerProcess[]
  revision: () => string
  timeoutMs: number
}): WorkersInspection => {
  const { workers, revision, timeoutMs } = options
  let reading: Promise<GatewayInspection> | undefined

  const ask = async (): Promise<GatewayInspection> => {
    const asked = workers().map((worker) => worker.call('inspect', undefined, timeoutMs).catch(() => []))
    const answers = (await Promise.all(asked)).flat()
    return { revision: revision(), upstreams: mergeUpstreams(answers) }
  }
  const read = () => {
    reading ??= ask().finally(() => {
      reading = undefined
    })
    return reading
  }

  return {
    read,
    checks: ({ upstreams }) =>
      Object.fromEntries(
        Object.entries(upstreams)
          .filter(([, settings]) => hasStates(settings))
          .map(([name]) => [
            `targets ${name}`,
            async () => {
              const upstream = (await read()).upstreams.find((one) => one.name === name)
              return { ok: true, detail: upstream ? targetsDetail(upstream) : 'no worker answers' }
            },
          ]),
      ),
  }
}

/** One for each upstream: what is counted is added, and of what is judged the worst counts. */
export const mergeUpstreams = (told: readonly Upstream[]): Upstream[] =>
  [...Map.groupBy(told, ({ name }) => name).values()].map((same) => ({
    ...same[0]!,
    running: sum(same.map(({ running }) => running)),
    overdrawn: same.some(({ overdrawn }) => overdrawn),
    targets: mergeTargets(same.flatMap(({ targets }) => targets)),
    names: mergeNames(same.flatMap(({ names }) => names)),
  }))

const mergeTargets = (told: readonly Target[]): Target[] =>
  [...Map.groupBy(told, ({ name }) => name).values()].map((same) => {
    const reason = same.find((one) => one.health === 'unhealthy' && one.reason !== undefined)?.reason
    const ejectedForMs = Math.max(0, ...same.map((one) => one.ejectedForMs ?? 0))
    const notIn = same.filter(({ state }) => state !== 'in').length
    const { reason: _reason, ejectedForMs: _ejectedForMs, ...first } = same[0]!
    return {
      ...first,
      state: worst(
        same.map(({ state }) => state),
        ['out', 'used', 'in'],
      ),
      health: worst(
        same.map(({ health }) => health),
        ['unhealthy', 'unknown', 'healthy'],
      ),
      ...(reason !== undefined && { reason }),
      ...(ejectedForMs > 0 && { ejectedForMs }),
      ejections: Math.max(...same.map(({ ejections }) => ejections)),
      share: Math.min(...same.map(({ share }) => share)),
      running: sum(same.map(({ running }) => running)),
      answered: sum(same.map(({ answered }) => answered)),
      failed: sum(same.map(({ failed }) => failed)),
      neither: sum(same.map(({ neither }) => neither)),
      ...(notIn > 0 && notIn < same.length && { toldBy: { workers: notIn, of: same.length } }),
    }
  })

const mergeNames = (told: Upstream['names']): Upstream['names'] =>
  [...Map.groupBy(told, ({ host }) => host)].map(([host, same]) => {
    const problem = same.find((one) => one.problem !== undefined)?.problem
    const addresses = [...new Set(same.flatMap((one) => one.addresses))]
    return { host, addresses, ...(problem !== undefined && { problem }) }
  })

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0)

const worst = <Value>(values: readonly Value[], order: readonly [Value, ...Value[]]): Value =>
  order.find((one) => values.includes(one)) ?? order[0]
