import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { type Decision, decideIsolated } from './decide.ts'
import { PolicyBusy, PolicyError } from './engine/index.ts'
import type { PolicyInput } from './input.ts'
import type { PolicySet, PolicySource } from './policy-set.ts'
import { watchPolicies } from './watch.ts'

/**
 * Candidate policies beside the live ones: asked the same in a thread of their own after the live decision was made,
 * compared, counted, and never enforced. Under load comparisons are skipped (and counted) rather than piled up.
 */
export interface Shadow {
  compare(asked: ShadowQuestion): void
  status(): { revision: string; lastError?: string }
  close(): Promise<void>
}

export interface ShadowQuestion {
  requestId: string
  route: string
  entrypoint: string
  input: PolicyInput
  /** The live one. */
  decision: Decision
}

/** Comparisons waiting for the next turn of the event loop; more are skipped. */
const mostWaiting = 1_000
const isolation = { workers: 1, deadline: 100, queue: mostWaiting, batch: 16, nice: 19 }
/** Lines of differences a second; the rest is only counted. */
const linesEachSecond = 10

const empty: PolicySet = {
  revision: 'none',
  entrypoints: [],
  evaluate: () => {
    throw new PolicyError('there are no shadow policies')
  },
}

/**
 * Follows the candidate's files as `watchPolicies` does. Candidates that cannot be loaded are no error: nothing is
 * compared until they can.
 * @param sample share of the decisions that are compared, 0 to 1. Default 1.
 */
export const createShadow = async (
  options: Pick<PolicySource, 'path' | 'opaBin' | 'remote' | 'verification'> & {
    sample?: number | undefined
    logger: Logger
    metrics: Metrics
  },
): Promise<Shadow> => {
  const { sample = 1, logger, metrics, ...source } = options
  const policies = await watchPolicies({ ...source, logger, metrics, name: 'shadow', isolation, startWith: empty })
  const compared = metrics.counter(
    'surrogate_gateway_shadow_decisions_total',
    'Decisions of the shadow policies: same, different, error (none given), or skipped',
    ['route', 'outcome'],
  )

  let second = 0
  let lines = 0
  const mayLog = (): boolean => {
    const now = Math.floor(performance.now() / 1000)
    if (now !== second) lines = 0
    second = now
    return lines++ < linesEachSecond
  }

  const compareNow = async ({ requestId, route, entrypoint, input, decision }: ShadowQuestion): Promise<void> => {
    const set = policies.current()
    if (set === empty) return
    const count = (outcome: string) => compared.inc({ route, outcome })
    try {
      const candidate = await decideIsolated(set, entrypoint, input)
      const differs = differences(decision, candidate)
      count(differs.length === 0 ? 'same' : gaveNone(candidate) ? 'error' : 'different')
      if (differs.length === 0 || !mayLog()) return
      const { revision } = set
      logger.info(
        { requestId, route, entrypoint, differs, live: summary(decision), shadow: summary(candidate), revision },
        'the shadow policies decide otherwise',
      )
    } catch (error) {
      if (!(error instanceof PolicyBusy)) throw error
      count('skipped')
    }
  }

  let waiting: ShadowQuestion[] = []
  let closed = false
  const flush = (): void => {
    const questions = waiting
    waiting = []
    for (const question of questions) {
      compareNow(question).catch((error: unknown) => logger.error({ err: error }, 'shadow policies failed'))
    }
  }

  return {
    compare(question) {
      if (closed || (sample < 1 && Math.random() >= sample)) return
      if (waiting.length >= mostWaiting) return void compared.inc({ route: question.route, outcome: 'skipped' })
      // After the request that asks: its answer does not wait for the input to be copied to the other thread.
      if (waiting.push(question) === 1) setImmediate(flush)
    },
    status: policies.status,
    async close() {
      closed = true
      await policies.close()
    },
  }
}

const gaveNone = (decision: Decision): boolean => !decision.allow && decision.reason === 'policy_error'

const compareBy: Record<string, (decision: Decision) => unknown> = {
  allow: ({ allow }) => allow,
  reason: (decision) => (decision.allow ? undefined : decision.reason),
  detail: (decision) => (decision.allow ? undefined : decision.detail),
  scope: (decision) => (decision.allow ? undefined : decision.scope),
  headers: ({ headers }) => Object.entries(headers).sort(),
}

const differences = (live: Decision, candidate: Decision): string[] =>
  isBareAllow(live) && isBareAllow(candidate)
    ? none
    : Object.keys(compareBy).filter(
        (name) => JSON.stringify(compareBy[name]!(live)) !== JSON.stringify(compareBy[name]!(candidate)),
      )

const none: string[] = []

/** Nearly every answer, and nothing in it to compare any closer. */
const isBareAllow = ({ allow, headers }: Decision): boolean => {
  if (!allow) return false
  for (const _ in headers) return false
  return true
}

/** What may stand in a log: no header's value, no text made from the input. */
const summary = (decision: Decision) => ({
  allow: decision.allow,
  ...(!decision.allow && { reason: decision.reason, ...(decision.scope && { scope: decision.scope }) }),
  ...(!decision.allow && decision.error !== undefined && { error: decision.error }),
  ...(Object.keys(decision.headers).length > 0 && { headers: Object.keys(decision.headers).sort() }),
})
