import { isIP } from 'node:net'
import type { Pool } from 'undici'
import type { Logger } from '../../../platform/logger.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import { targetsOf } from '../../config/settings/targets.ts'
import type { UpstreamSettings } from '../../config/settings/upstream.ts'
import { createGroup, type Group } from './group.ts'
import { createMembers, type OpenedTarget } from './members.ts'
import type { FollowedName } from './names/follow-name.ts'
import { targetMetrics } from './record.ts'
import { createSharedTargets, type Use, useAlone } from './shared.ts'
import type { Target, TargetState } from './target.ts'
import { UsedTarget } from './used-target.ts'

export interface Choice {
  /** What `balance: { hash: … }` hashes. Without one the less busy target is taken. */
  key?: string | undefined
  /** A target must have all of them. The same object for every request of a route. */
  labels?: Readonly<Record<string, string>> | undefined
  /** Targets that this request was sent to before. */
  tried?: readonly Target[] | undefined
}

/** What answers for an upstream, and which of it is next. */
export interface Targets {
  /** Undefined: no target has the labels, or each that may be used was tried. */
  pick(choice?: Choice): Target | undefined
  states(): readonly TargetState[]
  /** Names whose addresses are targets. */
  names(): readonly Pick<FollowedName, 'host' | 'addresses' | 'problem'>[]
  /** Whether all are used although more than `maxShare` would be out. */
  isOverdrawn(): boolean
  /** Whether it can tell more than that there is one. */
  readonly hasStates: boolean
  /** Resolves when names were asked for once. */
  readonly ready: Promise<void>
  /** Ends requests that are still under way, unless another configuration has the target too. */
  close(): Promise<void>
}

/** Whether there is more to tell of an upstream's targets than that there is one. */
export const hasStates = (settings: UpstreamSettings): boolean =>
  [settings.dns, settings.health, settings.ejection].some((watched) => watched !== undefined) ||
  targetsOf(settings).length > 1

export interface TargetsOptions {
  /** Of the upstream. */
  name: string
  settings: UpstreamSettings
  /** Connects to `address`, if given, instead of looking up the name of the origin, which stays what TLS is about. */
  openPool: (origin: string, address?: string) => Pool
  logger: Logger
  metrics: Metrics
  /** Monotonic, ms. Default `performance.now`. */
  now?: () => number
  /** What is known of targets outlives a reload by it. Default: nothing does. */
  use?: Use
  /** What of the settings `openPool` depends on; a change takes new connections. Default `connectTimeout`. */
  connection?: unknown
}

const defaultMaxShare = 0.5

interface Place {
  key: string
  name: string
  url: URL
  address: string | undefined
  weight: number
  labels: Readonly<Record<string, string>>
}

export const createTargets = (options: TargetsOptions): Targets => {
  const { name: upstream, settings, openPool, logger, metrics, use = useAlone } = options
  const { now = () => performance.now(), connection = { connectTimeout: settings.connectTimeout } } = options
  const { dns, health, ejection, balance, slowStart } = settings
  const shared = createSharedTargets({ upstream, connection, openPool, logger, metrics, now, use })
  const { changes } = shared

  const { used } = targetMetrics(metrics)
  const names = new Map<string, ReturnType<typeof shared.name>>()
  if (dns) {
    for (const { url } of targetsOf(settings)) {
      const host = nameOf(url)
      if (host !== undefined && !names.has(host)) names.set(host, shared.name(host, dns))
    }
  }

  const open = ({ name, url, address, weight, labels }: Place): OpenedTarget => {
    const { release, ...parts } = shared.target(name, url, address, health)
    const onEjected = (forMs: number) =>
      logger.warn({ upstream, target: name, forMs }, 'a target is ejected: its requests fail')
    const own = { name, url, address, weight, labels, ejection, slowStart, changes, now, onEjected }
    return { target: new UsedTarget({ ...parts, ...own }), release }
  }
  const members = createMembers({
    remember: dns?.refresh ?? 0,
    onLeave: ({ name }) => used.set({ upstream, target: name }, 0),
  })

  let targets: readonly UsedTarget[] = []
  let everyTarget: Group
  let byLabels: WeakMap<object, Group>
  /** Of one target nothing is asked. */
  let only: UsedTarget | undefined

  const groupOf = (chosen: readonly UsedTarget[], onLook?: (overdrawn: boolean) => void) =>
    createGroup({ targets: chosen, balance, maxShare: ejection?.maxShare ?? defaultMaxShare, changes, now, onLook })
  let told = false
  const tellOverdrawn = (overdrawn: boolean) => {
    if (overdrawn === told) return
    told = overdrawn
    if (overdrawn) logger.warn({ upstream }, 'too many targets are out: all of them are used')
    else logger.info({ upstream }, 'enough targets are well: the others are left out')
  }
  const labelled = (labels: Readonly<Record<string, string>>): Group => {
    const known = byLabels.get(labels)
    if (known) return known
    const wanted = Object.entries(labels)
    const made = groupOf(targets.filter((target) => wanted.every(([name, value]) => target.labels[name] === value)))
    byLabels.set(labels, made)
    return made
  }

  const update = () => {
    targets = members.set(
      placesOf(settings, (host) => names.get(host)?.part.addresses),
      open,
    )
    everyTarget = groupOf(targets, tellOverdrawn)
    byLabels = new WeakMap()
    only = targets.length === 1 ? targets[0] : undefined
  }
  update()
  const unfollow = [...names.values()].map(({ part }) => part.onChange(update))

  const overdrawn = metrics.gauge(
    'surrogate_gateway_upstream_overdrawn',
    '1 while all targets are used because too many would be out',
    ['upstream'],
  )
  const states = () => {
    const [at, all] = [now(), everyTarget.isOverdrawn()]
    return targets.map((target) => target.state(at, all))
  }
  const stopCollecting = metrics.onCollect(() => {
    for (const { name, state } of states()) used.set({ upstream, target: name }, state === 'out' ? 0 : 1)
    overdrawn.set({ upstream }, everyTarget.isOverdrawn() ? 1 : 0)
  })
  const seriesOf = use(
    'series of targets',
    { upstream },
    () => overdrawn,
    (gauge) => gauge.remove({ upstream }),
  )

  return {
    pick({ key, labels, tried } = nothingAsked) {
      if (only !== undefined && labels === undefined && !tried?.length) return only
      return (labels === undefined ? everyTarget : labelled(labels)).pick(key, tried)
    },
    states,
    names: () => [...names.values()].map(({ part }) => part),
    isOverdrawn: () => everyTarget.isOverdrawn(),
    hasStates: hasStates(settings),
    ready: Promise.all([...names.values()].map(({ part }) => part.ready)).then(() => {}),
    async close() {
      for (const stop of unfollow) stop()
      stopCollecting()
      await Promise.all([members.close(), ...[...names.values()].map(({ release }) => release())])
      await seriesOf.release()
      await shared.release()
    },
  }
}

const nothingAsked: Choice = {}

/** Undefined: it is an address. */
const nameOf = (url: string): string | undefined => {
  const { hostname } = new URL(url)
  return isIP(hostname.replace(/^\[|\]$/g, '')) > 0 ? undefined : hostname
}

/** Until a name has addresses it is one target, and looked up on connecting. */
const placesOf = (settings: UpstreamSettings, addressesOf: (host: string) => readonly string[] | undefined): Place[] =>
  targetsOf(settings).flatMap(({ url: text, weight, labels }) => {
    const url = new URL(text)
    const found = addressesOf(url.hostname) ?? []
    const addresses = found.length > 0 ? found : [undefined]
    return addresses.map((address) => {
      const name = address === undefined ? text : `${text} ${address}`
      return { key: name, name, url, address, weight, labels }
    })
  })
