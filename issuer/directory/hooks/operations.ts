import { cancelDeliveries } from '../../../deliveries/delivery-log-store.ts'
import { newSigningKey } from '../../../deliveries/hook-secrets.ts'
import { announceLanes } from '../../../deliveries/lane-notice-store.ts'
import { lockReplays } from '../../../deliveries/replay-store.ts'
import { type Database, queryOf } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import type { TargetPolicy } from '../../../platform/http/outbound.ts'
import { changesOf } from '../../base/change.ts'
import { notFound, requireFound } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutate } from '../../base/mutate.ts'
import type { OperationContext } from '../../base/route.ts'
import type { Hook, HookPatch, NewHook } from './hook.ts'
import { createHookStore, type HookColumns } from './hook-store.ts'

export interface HookOperationsDependencies {
  database: Pick<Database, 'query'>
  mutate: Mutate
  /** Seals signing keys and custom headers. */
  envelope: Envelope
  /** What may be a target; the relay checks again at every connect. */
  targets: TargetPolicy
  /** `BASE_URL`: hooks that lead here would answer every change with another. */
  baseUrl: string
}

/** Besides the current signing key. */
const maxOldKeys = 2

/** Changes of hooks. They emit no events of their own. */
export const hookOperations = ({ database, mutate, envelope, targets, baseUrl }: HookOperationsDependencies) => {
  const store = createHookStore(envelope)

  const refuseTarget = async (url: string): Promise<void> => {
    const refused =
      (await targets.refusal(url)) ?? (isOurs(url, baseUrl) ? 'The URL leads back to this service.' : undefined)
    if (refused !== undefined) throw problem('hook.target_not_allowed', { detail: refused, data: { url } })
  }

  return {
    /** Throws 422 `hook.target_not_allowed`. */
    refuseTarget,

    list: (slice: { limit: number; offset: number } | undefined) => store.list(database.query, slice),

    async get(id: string): Promise<Hook> {
      return requireFound(await store.find(database.query, id), id)
    },

    async create(context: OperationContext, input: NewHook): Promise<Hook> {
      const named = namedEvents(input)
      if (named === undefined) throw problem('hook.missing_events')
      await refuseTarget(input.config.url)
      return mutate(context, async ({ trx }) => {
        const query = queryOf(trx)
        const { name = '', enabled, organizationIds } = input
        const columns = { name, ...named, enabled, organizationIds, ...columnsOf(input.config) }
        const id = await store.insert(query, columns, newSigningKey())
        return requireFound(await store.find(query, id), id)
      })
    },

    async update(context: OperationContext, id: string, patch: HookPatch): Promise<Hook> {
      const named = namedEvents(patch)
      if (patch.config) await refuseTarget(patch.config.url)
      return mutate(context, async ({ trx }) => {
        const query = queryOf(trx)
        const current = await store.lock(query, id)
        if (current === undefined) throw problem('entity.not_exists', { data: { id } })
        const wanted: Partial<HookColumns> = {
          name: patch.name,
          ...named,
          enabled: patch.enabled,
          organizationIds: patch.organizationIds,
          ...(patch.config && columnsOf(patch.config)),
        }
        const changes = changesOf<HookColumns>(columnsOfHook(current), wanted)
        if (changes === undefined) return current
        await store.update(query, id, { ...columnsOfHook(current), ...changes })
        // What was held or waited for its receiver is due.
        await announceLanes(query)
        return requireFound(await store.find(query, id), id)
      })
    },

    remove: (context: OperationContext, id: string): Promise<void> =>
      mutate(context, async ({ trx }) => {
        const query = queryOf(trx)
        await lockReplays(query, id)
        if (!(await store.lock(query, id))) throw notFound(id)
        await cancelDeliveries(query, id)
        await store.remove(query, id)
      }),

    /** A new signing key; the replaced one signs along for `overlapSeconds`, at most two old ones at a time. */
    replaceSigningKey: (context: OperationContext, id: string, overlapSeconds: number): Promise<Hook> =>
      mutate(context, async ({ trx }) => {
        const query = queryOf(trx)
        if (!(await store.lock(query, id))) throw problem('entity.not_exists', { data: { id } })
        const keep = overlapSeconds === 0 ? 0 : maxOldKeys
        await store.replaceKey(query, id, newSigningKey(), { overlapSeconds, keep })
        return requireFound(await store.find(query, id), id)
      }),
  }
}

export type HookOperations = ReturnType<typeof hookOperations>

const portOf = ({ port, protocol }: URL) => port || (protocol === 'https:' ? '443' : '80')

/** Whatever its scheme: who redirects one to the other serves both. */
const isOurs = (url: string, baseUrl: string): boolean => {
  const [target, own] = [new URL(url), new URL(baseUrl)]
  if (target.hostname.replace(/\.$/, '') !== own.hostname.replace(/\.$/, '')) return false
  return portOf(target) === portOf(own) || (target.port === '' && own.port === '')
}

/**
 * What a hook shall listen to, in either of the two ways to say it; undefined when nothing is said. Throws 400 for an
 * empty list.
 */
const namedEvents = ({ events, event }: HookPatch): Pick<HookColumns, 'events' | 'event'> | undefined => {
  if (events?.length === 0) throw problem('hook.missing_events')
  if (events) return { events, event: null }
  return event ? { events: [event], event } : undefined
}

const columnsOf = ({ url, headers = {}, retries, rateLimit }: NewHook['config']) => ({
  url,
  headers,
  retries: retries ?? null,
  rateLimit: rateLimit ?? null,
})

const columnsOfHook = ({ id: _id, signingKey: _key, createdAt: _created, disabledReason: _reason, ...columns }: Hook) =>
  columns satisfies HookColumns
