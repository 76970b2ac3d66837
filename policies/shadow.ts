import { isDeepStrictEqual } from 'node:util'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { type Decision, decideIsolated } from './decide.ts'
import { PolicyBusy, PolicyError } from './engine/index.ts'
import type { PolicyInput } from './input.ts'
import type { PolicySet, PolicySource } from './policy-set.ts'
import { readSignInDecision, type SignInDecision, type SignInInput, signInEntrypoint } from './sign-in.ts'
import { watchPolicies } from './watch.ts'

/**
 * Candidate policies beside the live ones: asked the same in a thread of their own after the live decision was made,
 * compared, counted, and never enforced. Under load comparisons are skipped (and counted) rather than piled up.
 */
export interface ShadowOf<Question> {
  compare(asked: Question): void
  status(): { revision: string; lastError?: string }
  close(): Promise<void>
}

export type Shadow = ShadowOf<ShadowQuestion>
export type SignInShadow = ShadowOf<SignInShadowQuestion>

export interface ShadowQuestion {
  requestId: string
  /** Of the request, for the log. */
  trace?: { readonly traceId: string; readonly spanId: string | undefined } | undefined
  route: string
  entrypoint: string
  input: PolicyInput
  /** The live one. */
  decision: Decision
  /** Of the body in the input, in bytes. Default 0. */
  bodyLength?: number | undefined
}

export interface SignInShadowQuestion {
  input: SignInInput
  /** The live one. */
  decision: SignInDecision
}

type ShadowOptions = Pick<PolicySource, 'path' | 'opaBin' | 'remote' | 'verification' | 'input'> & {
  /** Share of the decisions that are compared, 0 to 1. Default 1. */
  sample?: number | undefined
  /** Of a comparison, in ms; see `IsolationOptions`. Default 100. */
  deadline?: number | undefined
  logger: Logger
  metrics: Metrics
  /** Called with what is logged of a difference, for each of them. */
  onDifference?: ((difference: object) => void) | undefined
  /** Follows the candidate. Default: its files or address. */
  watch?: typeof watchPolicies | undefined
}

/** Comparisons waiting for the next turn of the event loop; more are skipped. */
const mostWaiting = 1_000
const isolation = { workers: 1, queue: mostWaiting, batch: 16, nice: 19 }
/** Bytes of the bodies in them: each is held as a value, then as a text. */
const mostBodyBytes = 4_194_304
/** Lines of differences a second; the rest is only counted. */
const linesEachSecond = 10

const empty: PolicySet = {
  revision: 'none',
  entrypoints: [],
  evaluate: () => {
    throw new PolicyError('there are no shadow policies')
  },
}

type Outcome = 'same' | 'different' | 'error' | 'skipped'

/** How one kind of question is asked and what of the answers is told. */
interface Comparison<Question> {
  count(question: Question, outcome: Outcome): void
  /** `line`: for the log, when the candidate answers something else. Throws `PolicyBusy`. */
  judge(set: PolicySet, question: Question): Promise<{ outcome: Outcome; line?: object }>
  message: string
  /** Bytes that a question holds beyond what every question does. Default 0. */
  sizeOf?(question: Question): number
}

const follow = async <Question>(
  { sample = 1, deadline = 100, logger, metrics, onDifference, watch = watchPolicies, ...source }: ShadowOptions,
  { count, judge, message, name, sizeOf = () => 0 }: Comparison<Question> & { name: string },
): Promise<ShadowOf<Question>> => {
  const threads = { ...isolation, deadline }
  const policies = await watch({ ...source, logger, metrics, name, isolation: threads, startWith: empty })

  let second = 0
  let lines = 0
  const mayLog = (): boolean => {
    const now = Math.floor(performance.now() / 1000)
    if (now !== second) lines = 0
    second = now
    return lines++ < linesEachSecond
  }

  const compareNow = async (question: Question): Promise<void> => {
    const set = policies.current()
    if (set === empty) return
    try {
      const { outcome, line } = await judge(set, question)
      count(question, outcome)
      if (line) onDifference?.({ ...line, revision: set.revision })
      if (line && mayLog()) logger.info({ ...line, revision: set.revision }, message)
    } catch (error) {
      if (!(error instanceof PolicyBusy)) throw error
      count(question, 'skipped')
    }
  }

  let bodyBytes = 0
  let waiting: Question[] = []
  let closed = false
  const flush = (): void => {
    const questions = waiting
    waiting = []
    for (const question of questions) {
      compareNow(question)
        .catch((error: unknown) => logger.error({ err: error }, 'shadow policies failed'))
        .finally(() => {
          bodyBytes -= sizeOf(question)
        })
    }
  }

  return {
    compare(question) {
      if (closed || (sample < 1 && Math.random() >= sample)) return
      const size = sizeOf(question)
      if (waiting.length >= mostWaiting || bodyBytes + size > mostBodyBytes) return count(question, 'skipped')
      bodyBytes += size
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

/**
 * Of a gateway's routes. Follows the candidate's files as `watchPolicies` does. Candidates that cannot be loaded are no
 * error: nothing is compared until they can.
 */
export const createShadow = async (options: ShadowOptions): Promise<Shadow> => {
  const compared = options.metrics.counter(
    'surrogate_gateway_shadow_decisions_total',
    'Decisions of the shadow policies: same, different, error (none given), or skipped',
    ['route', 'outcome'],
  )
  return follow<ShadowQuestion>(options, {
    name: 'shadow',
    sizeOf: ({ bodyLength = 0 }) => bodyLength,
    message: 'the shadow policies decide otherwise',
    count: ({ route }, outcome) => compared.inc({ route, outcome }),
    async judge(set, { requestId, trace, route, entrypoint, input, decision }) {
      const candidate = await decideIsolated(set, entrypoint, input)
      const differs = differences(decision, candidate)
      if (differs.length === 0) return { outcome: 'same' }
      const ids = { requestId, ...(trace && { trace_id: trace.traceId, span_id: trace.spanId }) }
      const line = { ...ids, route, entrypoint, differs, live: summary(decision), shadow: summary(candidate) }
      return { outcome: gaveNone(candidate) ? 'error' : 'different', line }
    },
  })
}

/** The same of the rules about signing in. */
export const createSignInShadow = async (options: ShadowOptions): Promise<SignInShadow> => {
  const compared = options.metrics.counter(
    'surrogate_sign_in_shadow_decisions_total',
    'Decisions of the shadow rules about signing in: same, different, error (none given), or skipped',
    ['stage', 'outcome'],
  )
  return follow<SignInShadowQuestion>(options, {
    name: 'sign-in-shadow',
    message: 'the shadow rules about signing in decide otherwise',
    count: ({ input: { stage } }, outcome) => compared.inc({ stage, outcome }),
    async judge(set, { input, decision }) {
      const { stage, client, subject } = input
      const asked = { stage, clientId: client.id, ...(subject && { userId: subject.id }) }
      try {
        const candidate = readSignInDecision(await set.isolated?.evaluate(signInEntrypoint, input))
        const members = ['allow', 'reason', 'require', 'session'] as const
        const differs = members.filter((name) => !isDeepStrictEqual(decision[name], candidate[name]))
        if (differs.length === 0) return { outcome: 'same' }
        return { outcome: 'different', line: { ...asked, differs, live: decision, shadow: candidate } }
      } catch (error) {
        if (!(error instanceof PolicyError)) throw error
        return { outcome: 'error', line: { ...asked, live: decision, error: error.message } }
      }
    },
  })
}

const gaveNone = (decision: Decision): boolean => !decision.allow && decision.reason === 'policy_error'

const compareBy: Record<string, (decision: Decision) => unknown> = {
  allow: ({ allow }) => allow,
  reason: (decision) => (decision.allow ? undefined : decision.reason),
  detail: (decision) => (decision.allow ? undefined : decision.detail),
  scope: (decision) => (decision.allow ? undefined : decision.scope),
  headers: ({ headers }) => Object.entries(headers).sort(),
}

/** The members in which two decisions differ. */
export const differences = (live: Decision, candidate: Decision): string[] =>
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
export const summary = (decision: Decision) => ({
  allow: decision.allow,
  ...(!decision.allow && { reason: decision.reason, ...(decision.scope && { scope: decision.scope }) }),
  ...(!decision.allow && decision.error !== undefined && { error: decision.error }),
  ...(Object.keys(decision.headers).length > 0 && { headers: Object.keys(decision.headers).sort() }),
})
