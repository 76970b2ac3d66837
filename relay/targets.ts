import { type SealedTarget, sealedSamples, targetsOf, testTargetOf } from '../events/target-store.ts'
import type { Query } from '../platform/database.ts'
import type { HealthResult } from '../platform/health.ts'
import type { Logger } from '../platform/logger.ts'

/** Where a hook's deliveries go, opened for use. */
export interface Target {
  id: string
  url: URL
  headers: Record<string, string>
  /** Signing keys, newest first. */
  keys: readonly string[]
}

/** A hook as it is now. */
export interface Standing extends Pick<SealedTarget, 'receptive' | 'gated' | 'failing'> {
  /** Undefined when its secrets cannot be opened. */
  target: Target | undefined
}

/** Reads hooks right before something is sent to them, so that a change of a hook holds from the next attempt on. */
export interface Targets {
  /** Undefined when the hook is gone. What was read at most `freshMs` ago is taken; reads of many hooks go together. */
  current(hookId: string): Promise<Standing | undefined>
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
  left.url === right.url &&
  Buffer.compare(left.sealedHeaders ?? Buffer.alloc(0), right.sealedHeaders ?? Buffer.alloc(0)) === 0 &&
  left.sealedKeys.length === right.sealedKeys.length &&
  left.sealedKeys.every((key, index) => key.equals(right.sealedKeys[index]!))

export const createTargets = ({ query, secrets, logger, freshMs }: TargetsOptions): Targets => {
  const known = new Map<string, Known>()
  let wanted = new Set<string>()
  let next: Promise<void> | undefined
  let reading = Promise.resolve()

  const open = ({ id, url, sealedHeaders, sealedKeys }: SealedTarget): Target | undefined => {
    try {
      const keys = sealedKeys.map((sealed) => secrets.openSigningKey(id, sealed))
      return { id, url: new URL(url), headers: secrets.openHeaders(id, sealedHeaders), keys }
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
    for (const hookId of hookIds) if (!rows.some(({ id }) => id === hookId)) known.delete(hookId)
    for (const row of rows) learn(row, readAt)
  }

  /** Resolves when a read that began after the call has ended. */
  const readSoon = (hookId: string): Promise<void> => {
    wanted.add(hookId)
    next ??= reading
      .catch(() => {})
      .then(() => {
        const hookIds = [...wanted]
        wanted = new Set()
        next = undefined
        reading = read(hookIds)
        return reading
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

  return {
    async current(hookId) {
      const before = known.get(hookId)
      if (before && performance.now() - before.readAt < freshMs) return before.standing
      await readSoon(hookId)
      return known.get(hookId)?.standing
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
