import type { Query } from '../platform/database.ts'
import type { HealthResult } from '../platform/health.ts'
import type { Logger } from '../platform/logger.ts'
import { type SealedTarget, sealedSamples, targetsOf, testTargetOf } from './ledger/target-store.ts'
import { createSigningKey, type SigningKey } from './signature.ts'

/** Where a hook's deliveries go, opened for use. */
export interface Target {
  id: string
  url: URL
  headers: Record<string, string>
  /** Signing keys, newest first. */
  keys: readonly SigningKey[]
}

/** A hook as it is now. */
export interface Standing extends Pick<SealedTarget, 'receptive' | 'gated' | 'failing'> {
  /** Undefined when its secrets cannot be opened. */
  target: Target | undefined
}

/** Hooks as they are when something is sent to them: a change of a hook holds for what happens after it, and for what is sent `freshMs` later. */
export interface Targets {
  /**
   * As it was at `since` (`performance.now()`) or later, undefined when it is gone. What was read at most `freshMs` ago is taken, and read anew before
   * that is over while it is asked for; reads of many hooks go together.
   */
  current(hookId: string, since: number): Promise<Standing | undefined>
  /** Begins to read what soon is asked for. */
  prepare(hookId: string, since: number): void
  /** Where a test-send goes, when that is not where the hook points. */
  ofTest(standing: Target, deliveryId: number): Promise<Target>
  /** Whether the secrets of hooks can be opened. */
  health(): Promise<HealthResult>
}

export interface TargetSecrets {
  openHeaders(hookId: string, sealed: Buffer | null): Record<string, string>
  openSigningKey(hookId: string, sealed: Buffer): string
}

export interface TargetsOptions {
  query: Query
  secrets: TargetSecrets
  logger: Logger
  freshMs: number
}

interface Known {
  readAt: number
  sealed: SealedTarget
  standing: Standing
}

const keptTargets = 5_000
const healthMs = 5_000

const sameSecrets = (left: SealedTarget, right: SealedTarget): boolean =>
  left.url === right.url && left.sealedHeaders === right.sealedHeaders && left.sealedKeys === right.sealedKeys

const fromHex = (text: string) => Buffer.from(text, 'hex')

export const createTargets = ({ query, secrets, logger, freshMs }: TargetsOptions): Targets => {
  const known = new Map<string, Known>()
  let wanted = new Set<string>()
  /** Taken from memory since they were read: most likely they soon are again. */
  let busy = new Set<string>()
  let next: Promise<void> | undefined
  let reading: Promise<void> | undefined

  const open = ({ id, url, sealedHeaders, sealedKeys }: SealedTarget): Target | undefined => {
    try {
      const keys = sealedKeys.split(' ').map((sealed) => createSigningKey(secrets.openSigningKey(id, fromHex(sealed))))
      const headers = secrets.openHeaders(id, sealedHeaders === null ? null : fromHex(sealedHeaders))
      return { id, url: new URL(url), headers, keys }
    } catch (error) {
      logger.error({ err: error, hookId: id }, 'a hook cannot be opened: is its key-encryption key configured?')
      return undefined
    }
  }

  const learn = (sealed: SealedTarget, readAt: number) => {
    const before = known.get(sealed.id)
    // Opening costs more than reading.
    const target = before && sameSecrets(before.sealed, sealed) ? before.standing.target : open(sealed)
    const { receptive, gated, failing } = sealed
    known.set(sealed.id, { readAt, sealed, standing: { target, receptive, gated, failing } })
  }

  const read = async (hookIds: string[]) => {
    const readAt = performance.now()
    const rows = await targetsOf(query, hookIds)
    if (known.size > keptTargets) known.clear()
    const standing = new Set(rows.map(({ id }) => id))
    for (const hookId of hookIds) if (!standing.has(hookId)) known.delete(hookId)
    for (const row of rows) learn(row, readAt)
  }

  /** Resolves when a read that began after the call has ended. */
  const readSoon = (hookId: string): Promise<void> => {
    wanted.add(hookId)
    next ??= Promise.resolve(reading)
      .catch(() => {})
      .then(() => {
        const hookIds = [...new Set([...wanted, ...busy])]
        wanted = new Set()
        busy = new Set()
        next = undefined
        const own = read(hookIds).finally(() => {
          if (reading === own) reading = undefined
        })
        reading = own
        return own
      })
    return next
  }

  let health: { at: number; result: HealthResult } | undefined
  const checkSecrets = async (): Promise<HealthResult> => {
    for (const { hookId, sealed, count } of await sealedSamples(query)) {
      try {
        secrets.openSigningKey(hookId, sealed)
      } catch {
        const detail = `the secrets of hooks cannot be opened (${count} signing keys): KEY_ENCRYPTION_KEY is another one than theirs`
        return { ok: false, detail }
      }
    }
    return { ok: true }
  }

  const fresh = (hookId: string, since: number): Standing | undefined => {
    const before = known.get(hookId)
    if (before === undefined || before.readAt < since) return undefined
    const age = performance.now() - before.readAt
    if (age >= freshMs) return undefined
    busy.add(hookId)
    // Read anew before it must be, so that nothing waits for that. Whoever needs it then hears why it failed.
    if (age >= freshMs / 2 && reading === undefined && next === undefined) readSoon(hookId).catch(() => {})
    return before.standing
  }

  const current: Targets['current'] = async (hookId, since) => {
    const before = fresh(hookId, since)
    if (before !== undefined) return before
    await readSoon(hookId)
    return known.get(hookId)?.standing
  }

  return {
    current,
    prepare(hookId, since) {
      // Whoever asks hears why it failed.
      current(hookId, since).catch(() => {})
    },
    async ofTest(target, deliveryId) {
      const other = await testTargetOf(query, deliveryId)
      if (other === undefined) return target
      return { ...target, url: new URL(other.url), headers: secrets.openHeaders(target.id, other.sealedHeaders) }
    },
    async health() {
      if (health === undefined || performance.now() - health.at > healthMs)
        health = { at: performance.now(), result: await checkSecrets() }
      return health.result
    },
  }
}
