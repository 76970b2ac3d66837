import { createBatcher } from '../platform/batcher.ts'
import type { Query } from '../platform/database/database.ts'
import type { HealthResult } from '../platform/health.ts'
import type { Logger } from '../platform/logger.ts'
import { type SealedTarget, sealedSamples, targetsOf, testTargetOf } from './ledger/target-store.ts'
import { createSigningKey, type SigningKeys } from './signature.ts'

/** Where a hook's deliveries go, opened for use. */
export interface Target {
  id: string
  url: URL
  headers: Record<string, string>
  keys: SigningKeys
}

/** A hook as it is now. */
export interface HookState extends Pick<SealedTarget, 'active' | 'gated' | 'failing'> {
  /** Undefined when its secrets cannot be opened. */
  target: Target | undefined
}

/**
 * Hooks as they are when something is sent to them. A change of a hook holds for events after it, and for all attempts
 * `freshMs` later.
 */
export interface Targets {
  /**
   * As it was at `since` (`performance.now()`) or later; undefined when it is gone. What was read at most `freshMs` ago
   * is used again. Reads of many hooks at the same time go together.
   */
  current(hookId: string, since: number): Promise<HookState | undefined>
  /** Where a test-send goes, when that is not where the hook points. */
  ofTest(target: Target, deliveryId: number): Promise<Target>
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
  state: HookState
}

const keptTargets = 5_000
const healthMs = 5_000
/**
 * Hooks read in one statement, and statements under way, at most; another one begins after `secondAfterMs` when the
 * first takes longer.
 */
const reads = { most: 1_000, mostUnderWay: 4, secondAfterMs: 5 }

const sameSecrets = (left: SealedTarget, right: SealedTarget): boolean =>
  left.url === right.url && left.sealedHeaders === right.sealedHeaders && left.sealedKeys === right.sealedKeys

const fromHex = (text: string) => Buffer.from(text, 'hex')

export const createTargets = ({ query, secrets, logger, freshMs }: TargetsOptions): Targets => {
  const known = new Map<string, Known>()

  const open = ({ id, url, sealedHeaders, sealedKeys }: SealedTarget): Target | undefined => {
    try {
      const openKey = (sealed: string) => createSigningKey(secrets.openSigningKey(id, fromHex(sealed)))
      const [newest = '', ...older] = sealedKeys.split(' ')
      const keys: SigningKeys = [openKey(newest), ...older.map(openKey)]
      const headers = secrets.openHeaders(id, sealedHeaders === null ? null : fromHex(sealedHeaders))
      return { id, url: new URL(url), headers, keys }
    } catch (error) {
      logger.error({ err: error, hookId: id }, 'a hook cannot be opened: is its key-encryption key configured?')
      return undefined
    }
  }

  const learn = (sealed: SealedTarget, readAt: number): HookState => {
    const before = known.get(sealed.id)
    // Opening costs more than reading.
    const target = before && sameSecrets(before.sealed, sealed) ? before.state.target : open(sealed)
    const { active, gated, failing } = sealed
    const state = { target, active, gated, failing }
    known.set(sealed.id, { readAt, sealed, state })
    return state
  }

  const read = createBatcher<string, HookState | undefined>({
    ...reads,
    mayRepeat: () => false,
    async send(hookIds) {
      const readAt = performance.now()
      const wanted = [...new Set(hookIds)]
      const rows = await targetsOf(query, wanted)
      if (known.size > keptTargets) known.clear()
      const found = new Map(rows.map((row) => [row.id, learn(row, readAt)]))
      for (const hookId of wanted) if (!found.has(hookId)) known.delete(hookId)
      return hookIds.map((hookId) => found.get(hookId))
    },
  })

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

  return {
    async current(hookId, since) {
      const before = known.get(hookId)
      const isFresh = before && before.readAt >= since && performance.now() - before.readAt < freshMs
      return isFresh ? before.state : read(hookId)
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
