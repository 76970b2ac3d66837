import { setTimeout as delay } from 'node:timers/promises'
import { statesOf, textOf } from '../platform/file-states.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { GatewayConfig } from './config/load.ts'
import { tlsFiles } from './upstream/upstream-tls.ts'

/** A configuration that follows its file and the files with keys that it names. */
export interface Reloads {
  /** Reads the file now, changed or not. Resolves when its content is in force or refused. */
  reload(): Promise<void>
  /** For `/readyz`: always ok, since a good configuration runs; the detail tells when it is not the one in the file. */
  status(): { ok: true; detail: string }
  close(): Promise<void>
}

/**
 * How often the file is checked, in ms. Polling rather than `fs.watch`, which misses replaced links (Kubernetes
 * ConfigMaps) and network file systems. A changed file is read once it has stayed the same for one interval: half a
 * file can be a valid configuration with half of the routes.
 */
const checkInterval = 250

export const createReloads = (options: {
  /** Looked at for changes, like the key file; undefined: only `reload` does something. */
  file: string | undefined
  /** What runs at first. */
  running: GatewayConfig
  /** Reads and checks it; rejects with an error whose message says what is wrong, with line and column. */
  load: () => Promise<GatewayConfig>
  /**
   * Replaces the running configuration, whole or not at all; resolves to whether it did. `signal` aborts when a later
   * one has come.
   */
  apply: (config: GatewayConfig, signal: AbortSignal) => Promise<boolean>
  logger: Logger
  metrics: Metrics
}): Reloads => {
  const { file, load, apply, logger, metrics } = options
  const outcomes = metrics.counter('surrogate_gateway_config_reloads_total', 'Reloads of gateway.yaml', ['outcome'])
  const stale = metrics.gauge(
    'surrogate_gateway_config_stale',
    '1 while gateway.yaml says something else than what runs',
  )
  stale.set(0)
  let running = options.running
  let problem: string | undefined
  let latest = new AbortController()
  let last: Promise<void> = Promise.resolve()
  let closed = false
  /** Somebody has asked for a reload even of an unchanged file, and none has come to its end since. */
  let owed = false

  /** Resolves to whether it came to its end: not when a later one has come first. */
  const attempt = async (signal: AbortSignal, forced: boolean): Promise<boolean> => {
    try {
      const config = await load()
      // The file was only touched, or its old content came back.
      if (!forced && config.revision === running.revision) {
        problem = undefined
        stale.set(0)
        return true
      }
      problem = `revision ${config.revision} waits for its issuers; revision ${running.revision} runs`
      if (!(await apply(config, signal))) return false
      running = config
      problem = undefined
      stale.set(0)
      outcomes.inc({ outcome: 'ok' })
      logger.info({ revision: config.revision }, 'the configuration was reloaded')
    } catch (error) {
      if (signal.aborted) return false
      problem = `${(error as Error).message}\nrevision ${running.revision} keeps running`
      stale.set(1)
      outcomes.inc({ outcome: 'refused' })
      const { revision } = running
      logger.error({ revision, problem: (error as Error).message }, 'the configuration was not reloaded')
    }
    return true
  }
  const attemptOwed = async (signal: AbortSignal) => {
    if (signal.aborted) return
    const forced = owed
    owed = false
    if (!(await attempt(signal, forced))) owed ||= forced
  }

  // Reloads run one at a time and in order. A later one aborts the one that is being tried, and does what that owes.
  const reload = (forced: boolean): Promise<void> => {
    owed ||= forced
    latest.abort()
    latest = new AbortController()
    const { signal } = latest
    last = last.then(() => attemptOwed(signal))
    return settled()
  }
  const settled = async (): Promise<void> => {
    let awaited: Promise<void>
    do {
      awaited = last
      await awaited
    } while (awaited !== last)
  }

  const stop = new AbortController()
  const follow = async (path: string) => {
    // The state of the main file is left out, so that a change made while the gateway started counts too.
    let seen = await statesOf(filesBeside(running))
    let before = ''
    while (!stop.signal.aborted) {
      await delay(checkInterval, undefined, { signal: stop.signal, ref: false }).catch(() => {})
      const states = await statesOf([path, ...filesBeside(running)])
      const settling = before !== textOf(states)
      before = textOf(states)
      if (stop.signal.aborted || settling || before === textOf(seen)) continue
      const besideChanged = filesBeside(running).some((file) => seen.has(file) && seen.get(file) !== states.get(file))
      seen = states
      void reload(besideChanged)
    }
  }
  const following = file === undefined ? undefined : follow(file)

  return {
    reload: () => (closed ? Promise.resolve() : reload(true)),
    status: () => ({ ok: true, detail: problem ?? `revision ${running.revision}` }),
    async close() {
      closed = true
      stop.abort()
      latest.abort()
      await following
      await last
    },
  }
}

/** Files that the configuration names and that are read with it. */
const filesBeside = ({ identity, upstreams }: GatewayConfig): string[] => [
  ...(identity ? [identity.keyFile] : []),
  ...tlsFiles(upstreams),
]
