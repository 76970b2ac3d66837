import type { Pool } from 'undici'
import type { Logger } from '../../../platform/logger.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import type { DnsSettings, HealthSettings } from '../../config/settings/targets.ts'
import type { Changes } from './group.ts'
import { type HealthChecks, startHealthChecks } from './health-checks.ts'
import { type FollowedName, followName } from './names/follow-name.ts'
import { openRecord, type TargetRecord } from './record.ts'

/** `use` of the gateway's shared parts: equal settings are one part, closed by the release of its last user. */
export type Use = <Part>(
  kind: string,
  settings: unknown,
  open: () => Part,
  close: (part: Part) => Promise<unknown> | unknown,
) => { part: Part; release: () => Promise<void> }

/** Nothing is shared with others. */
export const useAlone: Use = (_kind, _settings, open, close) => {
  const part = open()
  let closed: Promise<unknown> | undefined
  return {
    part,
    async release() {
      closed ??= Promise.resolve(close(part))
      await closed
    },
  }
}

/** What configurations share of a target that they both have. */
export interface SharedTarget {
  record: TargetRecord
  pool: Pool
  checks: HealthChecks | undefined
  release(): Promise<void>
}

/**
 * Opens what outlives a configuration, each under the settings that it depends on: a changed `maxRequests` changes none
 * of it, a changed time limit for connections takes another pool, and what is known of the target stays.
 */
export const createSharedTargets = (options: {
  upstream: string
  /** What of the upstream's settings opens a connection. */
  connection: unknown
  openPool: (origin: string, address?: string) => Pool
  logger: Logger
  metrics: Metrics
  now: () => number
  use: Use
}) => {
  const { upstream, connection, openPool, logger, metrics, now, use } = options
  const changes = use<Changes>(
    'changes of targets',
    { upstream },
    () => ({ count: 0 }),
    () => {},
  )
  const checked = metrics.counter('surrogate_gateway_health_checks_total', 'Checks of targets, good and bad', [
    'upstream',
    'target',
    'outcome',
  ])
  const unresolved = metrics.counter(
    'surrogate_gateway_unresolved_names_total',
    'Times that the name of targets could not be resolved',
    ['upstream', 'host'],
  )

  const startChecks = (target: string, settings: HealthSettings, open: () => Pool, record: TargetRecord) =>
    startHealthChecks({
      settings,
      known: record.health,
      openPool: open,
      onCheck: (good) => checked.inc({ upstream, target, outcome: good ? 'good' : 'bad' }),
      onChange(state, reason) {
        // Whoever comes back starts slowly; the first check of one that was used before takes nothing from it.
        if (record.health === 'unhealthy') record.since = now()
        record.health = state
        changes.part.count++
        if (state === 'healthy') logger.info({ upstream, target }, 'the checks of a target are good')
        else logger.warn({ upstream, target, reason }, 'the checks of a target are bad')
      },
    })

  return {
    changes: changes.part,
    target(name: string, url: URL, address: string | undefined, health: HealthSettings | undefined): SharedTarget {
      const { origin } = url
      const place = { upstream, name }
      const record = use(
        'target',
        place,
        () => openRecord({ upstream, target: name }, metrics, now),
        (opened) => {
          opened.close()
          for (const outcome of ['good', 'bad']) checked.remove({ upstream, target: name, outcome })
        },
      )
      const open = () => openPool(origin, address)
      const pool = use('pool of a target', { upstream, origin, address, connection }, open, (part) => part.destroy())
      const checks =
        health &&
        use(
          'checks of a target',
          { ...place, connection, health },
          () => startChecks(name, health, open, record.part.record),
          (part) => part.close(),
        )
      return {
        record: record.part.record,
        pool: pool.part,
        checks: checks?.part,
        async release() {
          await checks?.release()
          await Promise.all([pool.release(), record.release()])
        },
      }
    },
    name(host: string, settings: DnsSettings): { part: FollowedName; release: () => Promise<void> } {
      const { servers, family } = settings
      const last = use<{ addresses: readonly string[] }>(
        'addresses of a name',
        { upstream, host, servers, family },
        () => ({ addresses: [] }),
        () => void unresolved.remove({ upstream, host }),
      )
      const followed = use(
        'name of targets',
        { upstream, host, settings },
        () => {
          const name = followName({
            host,
            settings,
            known: last.part.addresses,
            logger: logger.child({ upstream }),
            onProblem: () => unresolved.inc({ upstream, host }),
          })
          name.onChange(() => {
            last.part.addresses = name.addresses
          })
          return name
        },
        (name) => name.close(),
      )
      return {
        part: followed.part,
        async release() {
          await followed.release()
          await last.release()
        },
      }
    },
    release: changes.release,
  }
}
