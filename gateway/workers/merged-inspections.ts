import type { GatewayInspection } from '../inspection/upstreams.ts'

type Upstream = GatewayInspection['upstreams'][number]
type Target = Upstream['targets'][number]

/**
 * One account of all workers. What they count is added up; how a target is, each has found out for itself, and the
 * worst of it is told.
 */
export const mergeInspections = (revision: string, workers: readonly GatewayInspection[]): GatewayInspection => ({
  revision,
  upstreams: grouped(workers.flatMap(({ upstreams }) => upstreams)).map(mergeUpstreams),
})

const grouped = <Named extends { name: string }>(all: readonly Named[]): Named[][] => [
  ...Map.groupBy(all, ({ name }) => name).values(),
]

const mergeUpstreams = (all: readonly Upstream[]): Upstream => ({
  ...all[0]!,
  running: total(all, 'running'),
  overdrawn: all.some(({ overdrawn }) => overdrawn),
  targets: grouped(all.flatMap(({ targets }) => targets)).map(mergeTargets),
  names: [
    ...Map.groupBy(
      all.flatMap(({ names }) => names),
      ({ host }) => host,
    ).values(),
  ].map((names) => names.find(({ problem }) => problem !== undefined) ?? names[0]!),
})

const badness = { in: 0, used: 1, out: 2 } as const

const mergeTargets = (all: readonly Target[]): Target => ({
  ...all.toSorted((one, other) => badness[other.state] - badness[one.state])[0]!,
  share: Math.min(...all.map(({ share }) => share)),
  ejections: total(all, 'ejections'),
  running: total(all, 'running'),
  answered: total(all, 'answered'),
  failed: total(all, 'failed'),
  neither: total(all, 'neither'),
})

const total = <Key extends string>(all: readonly Readonly<Record<Key, number>>[], key: Key): number =>
  all.reduce((sum, one) => sum + one[key], 0)
