import { backOffMs } from '../../../../platform/back-off.ts'
import type { Logger } from '../../../../platform/logger.ts'
import type { DnsSettings } from '../../../config/settings/targets.ts'
import { createNameResolver } from './resolve.ts'

/** A name whose addresses are targets. */
export interface FollowedName {
  readonly host: string
  /** The last ones known; empty: none were ever found. */
  readonly addresses: readonly string[]
  /** Why they could not be asked for the last time. */
  readonly problem: string | undefined
  /** Resolves when there are addresses, or the name was asked for once, whatever came of it. */
  readonly ready: Promise<void>
  /** Runs `listener` when the addresses changed; returns what ends that. */
  onChange(listener: () => void): () => void
  close(): void
}

const shortestRefresh = 1_000
/** So that gateways that started together do not ask together. */
const jitter = 0.1

/** Keeps its addresses while nobody answers, also when the name is said not to exist: a mistake there stops nothing. */
export const followName = (options: {
  host: string
  settings: DnsSettings
  /** From an earlier configuration. */
  known: readonly string[]
  logger: Logger
  onProblem: () => void
}): FollowedName => {
  const { host, settings, logger, onProblem } = options
  const resolver = createNameResolver(settings)
  const listeners = new Set<() => void>()
  const ready = Promise.withResolvers<void>()
  let addresses = options.known
  let problem: string | undefined
  let failures = 0
  let closed = false
  let timer: NodeJS.Timeout | undefined

  const found = (next: readonly string[]) => {
    if (problem !== undefined) logger.info({ host }, 'the name has addresses again')
    problem = undefined
    failures = 0
    if (next.join() === addresses.join()) return
    logger.info({ host, addresses: next, before: addresses }, 'the addresses of the name changed')
    addresses = next
    for (const listener of [...listeners]) listener()
  }

  const failed = (code: string) => {
    failures++
    onProblem()
    if (problem === undefined) {
      logger.warn({ host, code, addresses }, 'the name cannot be resolved: the last addresses stay in use')
    }
    problem = code
  }

  /** Returns when to ask again, in ms. */
  const ask = async (): Promise<number> => {
    try {
      const answer = await resolver.resolve(host, addresses)
      if (!closed) found(answer.addresses)
      const life = Math.max(answer.ttl ?? settings.refresh, shortestRefresh)
      return Math.min(life, settings.refresh) * (1 - jitter * Math.random())
    } catch (error) {
      if (!closed) failed((error as NodeJS.ErrnoException).code ?? 'unknown')
      return backOffMs(failures, { first: shortestRefresh, longest: settings.refresh, jitter })
    }
  }
  const askAndAgain = async () => {
    const pause = await ask()
    ready.resolve()
    if (!closed) timer = setTimeout(askAndAgain, Math.max(pause, shortestRefresh)).unref()
  }
  // What an earlier configuration found is good enough to begin with.
  if (addresses.length > 0) ready.resolve()
  void askAndAgain()

  return {
    host,
    get addresses() {
      return addresses
    },
    get problem() {
      return problem
    },
    ready: ready.promise,
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close() {
      closed = true
      clearTimeout(timer)
      resolver.close()
    },
  }
}
