import type { Lifecycle } from '../platform/lifecycle.ts'
import { Secret, sha256 } from '../platform/secret.ts'

/**
 * Parts that outlive a configuration: keys, revocations, connections and counts stay after a reload that did not change
 * their settings. The first user opens a part, and the release by the last one closes it.
 */
export interface SharedParts {
  /**
   * Parts with equal `settings` are one part. List in `settings` everything that `open` depends on and a reload may
   * change.
   */
  use<Part>(
    kind: string,
    settings: unknown,
    open: () => Part,
    close: (part: Part) => Promise<unknown> | unknown,
  ): { part: Part; release: () => Promise<void> }
}

interface Shared {
  part: unknown
  users: number
}

export const createSharedParts = (): SharedParts => {
  const parts = new Map<string, Shared>()
  return {
    use<Part>(kind: string, settings: unknown, open: () => Part, close: (part: Part) => Promise<unknown> | unknown) {
      const key = `${kind} ${JSON.stringify(settings, withSecrets)}`
      const shared = parts.get(key) ?? { part: open(), users: 0 }
      parts.set(key, shared)
      shared.users++
      let released = false
      return {
        part: shared.part as Part,
        async release() {
          if (released) return
          released = true
          if (--shared.users > 0) return
          parts.delete(key)
          await close(shared.part as Part)
        },
      }
    },
  }
}

/** By their digests: two secrets are two settings, although both print the same. */
function withSecrets(this: unknown, name: string, value: unknown): unknown {
  const original = (this as Record<string, unknown>)[name]
  return original instanceof Secret ? sha256(original.reveal()).toString('base64') : value
}

/** Uses parts until `lifecycle` stops. */
export const usedBy =
  (lifecycle: Lifecycle, shared: SharedParts) =>
  <Part>(kind: string, settings: unknown, open: () => Part, close: (part: Part) => unknown): Part => {
    const { part, release } = shared.use(kind, settings, open, close)
    lifecycle.onStop(kind, release)
    return part
  }

export const closing = (part: { close(): Promise<unknown> | unknown }) => part.close()
