import { cancelDeliveries } from '../../events/delivery-log-store.ts'
import { newSigningKey } from '../../events/hook-secrets.ts'
import { type Database, queryOf } from '../../platform/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import type { TargetPolicy } from '../../platform/outbound.ts'
import { AppError } from '../../platform/problem.ts'
import { changesOf } from '../management/change.ts'
import type { Mutate } from '../management/mutate.ts'
import type { OperationContext } from '../management/route.ts'
import type { Hook, HookPatch, NewHook } from './hook.ts'
import { createHookStore, type HookColumns } from './hook-store.ts'

export interface HookDependencies {
  database: Database
  mutate: Mutate
  /** Seals signing keys and custom headers. */
  envelope: Envelope
  /** What may be a target; the relay checks again at every connect. */
  targets: TargetPolicy
}

/** Besides the current signing key. */
const maxOldKeys = 2

/** Changes of hooks. They emit no events of their own. */
export const hookOperations = ({ database, mutate, envelope, targets }: HookDependencies) => {
  const store = createHookStore(envelope)

  const refuseTarget = async (url: string) => {
    const refused = await targets.refusal(url)
    if (refused !== undefined) throw new AppError('hook.target_not_allowed', { detail: refused, data: { url } })
  }

  return {
    list: (slice: { limit: number; offset: number } | undefined) => store.list(database.query, slice),

    async get(id: string): Promise<Hook> {
      const found = await store.find(database.query, id)
      if (found === undefined) throw new AppError('entity.not_exists_with_id', { data: { id } })
      return found
    },

    async create(context: OperationContext, input: NewHook): Promise<Hook> {
      const events = input.events ?? (input.event ? [input.event] : [])
      if (events.length === 0) throw new AppError('hook.missing_events')
      await refuseTarget(input.config.url)
      return mutate(context, async ({ trx }) => {
        const query = queryOf(trx)
        const { name = '', enabled } = input
        const id = await store.insert(query, { name, events, enabled, ...columnsOf(input.config) }, newSigningKey())
        return (await store.find(query, id))!
      })
    },

    async update(context: OperationContext, id: string, { event, ...patch }: HookPatch): Promise<Hook> {
      const events = patch.events ?? (event ? [event] : undefined)
      if (events?.length === 0) throw new AppError('hook.missing_events')
      if (patch.config) await refuseTarget(patch.config.url)
      return mutate(context, async ({ trx }) => {
        const query = queryOf(trx)
        const current = await store.lock(query, id)
        if (current === undefined) throw new AppError('entity.not_exists', { data: { id } })
        const wanted: Partial<HookColumns> = {
          name: patch.name,
          events,
          enabled: patch.enabled,
          ...(patch.config && columnsOf(patch.config)),
        }
        const changes = changesOf<HookColumns>(columnsOfHook(current), wanted)
        if (changes === undefined) return current
        await store.update(query, id, { ...columnsOfHook(current), ...changes })
        return (await store.find(query, id))!
      })
    },

    remove: (context: OperationContext, id: string): Promise<void> =>
      mutate(context, async ({ trx }) => {
        const query = queryOf(trx)
        if (!(await store.remove(query, id))) throw new AppError('entity.not_found', { data: { id } })
        await cancelDeliveries(query, id)
      }),

    /** A new signing key; the replaced one signs along for `overlapSeconds`, at most two old ones at a time. */
    replaceSigningKey: (context: OperationContext, id: string, overlapSeconds: number): Promise<Hook> =>
      mutate(context, async ({ trx }) => {
        const query = queryOf(trx)
        if (!(await store.lock(query, id))) throw new AppError('entity.not_exists', { data: { id } })
        const keep = overlapSeconds === 0 ? 0 : maxOldKeys
        await store.replaceKey(query, id, newSigningKey(), { overlapSeconds, keep })
        return (await store.find(query, id))!
      }),
  }
}

const columnsOf = ({ url, headers = {}, retries }: NewHook['config']) => ({ url, headers, retries: retries ?? null })

const columnsOfHook = ({ name, events, url, headers, retries, enabled }: Hook): HookColumns => ({
  name,
  events,
  url,
  headers,
  retries,
  enabled,
})
