import { decide, type PolicyInput, type PolicySet } from '../../policies/decide.ts'
import type { InputPaths } from '../../policies/engine/index.ts'
import { differences, summary } from '../../policies/shadow.ts'
import type { ApplyMasks } from '../logs/mask.ts'
import { type DecisionRecord, decisionRecord } from './decision-answers.ts'
import type { TryAnswer } from './policy-answers.ts'
import { hiddenOf, readInput, touches } from './recorded-input.ts'

/** Policies that can be asked, and what they read of their input where that is known. */
export interface ComparedPolicies {
  set: Pick<PolicySet, 'evaluate'>
  paths: Readonly<Record<string, InputPaths>> | undefined
}

export interface ComparisonParts {
  /** JSON, newest first. */
  records: readonly Uint8Array[]
  before: ComparedPolicies
  after: ComparedPolicies
  /** Those of results. */
  masks: ApplyMasks
  /** Whether there is time left. */
  mayGoOn(): boolean
}

const mostHidden = 20

/**
 * Asks two policies what was recorded, and tells where they decide differently. Both are asked now: what was decided
 * then may be due to rules that have changed since. Records that lack what one of them reads tell nothing.
 */
export const compareDecisions = (parts: ComparisonParts): NonNullable<TryAnswer['decisions']> => {
  const { records, before, after, masks, mayGoOn } = parts
  const result = { found: 0, compared: 0, notComparable: 0, notAsked: 0 }
  const hidden = new Set<string>()
  const changes: NonNullable<TryAnswer['decisions']>['changes'] = []
  for (const bytes of records) {
    const record = decisionRecord.parse(JSON.parse(Buffer.from(bytes).toString()))
    const { path: entrypoint, input } = record
    if (entrypoint === undefined || !wasAsked(record)) continue
    result.found++
    const missing = hiddenOf(record).filter((pointer) =>
      [before, after].some(({ paths }) => isRead(pointer, paths?.[entrypoint] ?? null)),
    )
    if (missing.length > 0) {
      result.notComparable++
      for (const pointer of missing) if (hidden.size < mostHidden) hidden.add(pointer)
      continue
    }
    if (!mayGoOn()) {
      result.notAsked++
      continue
    }
    const [then, now] = [before, after].map(({ set }) => decide(set as PolicySet, entrypoint, input as PolicyInput))
    result.compared++
    const differs = differences(then!, now!)
    if (differs.length === 0) continue
    const { request } = readInput(record)
    changes.push({
      request: record.decision_id,
      timestamp: record.timestamp,
      ...(record.route !== undefined && { route: record.route }),
      ...(request?.method !== undefined && { method: request.method }),
      ...(request?.path !== undefined && { path: request.path }),
      differs,
      before: masked(summary(then!), masks),
      after: masked(summary(now!), masks),
    })
  }
  return { ...result, hidden: [...hidden], changes }
}

/** Whether a policy was: its input is whole, or masks have taken it out. */
const wasAsked = (record: DecisionRecord): boolean =>
  readInput(record).version !== undefined || hiddenOf(record).some((pointer) => /^\/input(?:\/version)?$/.test(pointer))

/** Whether a rule reads what a mask has taken out, something in it, or something around it. */
const isRead = (hidden: string, paths: InputPaths): boolean =>
  hidden === '/input' || paths === null || paths.some((path) => touches(hidden, `/input${path}`))

/** Whether it allows is in every record, as its verdict. */
const masked = (told: ReturnType<typeof summary>, masks: ApplyMasks) => {
  const event = { result: structuredClone(told) as object }
  masks(event)
  return { ...(typeof event.result === 'object' ? event.result : {}), allow: told.allow }
}
