import type { KeepDecision } from '../logs/request-logs.ts'
import { type ShadowDifference, shadowDifference } from './decision-answers.ts'
import { keptDecision } from './decision-record.ts'
import { createDecisionRing, type DecisionRing } from './decision-ring.ts'

/** What a gateway keeps to be inspected; over all of its configurations. */
export interface Recorder {
  keep: KeepDecision
  onDifference: (difference: object) => void
  readonly decisions: DecisionRing
  /** Of shadow policies, newest first. */
  differences(): ShadowDifference[]
}

const mostDifferences = 100

/** @param keep bytes of decisions. */
export const createRecorder = ({ keep }: { keep: number }): Recorder => {
  const decisions = createDecisionRing({ keep })
  const differences: ShadowDifference[] = []
  return {
    decisions,
    keep: (event, context) => decisions.add(keptDecision(event, context)),
    onDifference(difference) {
      const told = { timestamp: new Date().toISOString(), ...difference }
      if (differences.unshift(shadowDifference.parse(told)) > mostDifferences) differences.pop()
    },
    differences: () => [...differences],
  }
}
