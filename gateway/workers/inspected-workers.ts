import type { PolicySet } from '../../policies/decide.ts'
import type { Inspected } from '../inspection/inspected.ts'
import { askAll, reportTimeoutMs } from './ask-all.ts'
import type { WorkerProcess } from './fork-worker.ts'
import type { MergedDecisions } from './merged-decisions.ts'
import { mergeInspections } from './merged-inspections.ts'
import { mergeIssuers } from './merged-issuers.ts'

/** What is inspected of a gateway in several processes: what its workers know, as one account. */
export const inspectedWorkers = (options: {
  /** Those that serve. */
  members: () => readonly WorkerProcess[]
  decisions: MergedDecisions
  /** In force. */
  revision: () => string
  policies: () => PolicySet
}): Inspected => {
  const { members, decisions, revision, policies } = options
  return {
    decisions,
    policies,
    async upstreams() {
      const answers = await askAll(members(), (worker) => worker.call('inspect', undefined, reportTimeoutMs))
      return mergeInspections(
        revision(),
        answers.flatMap(({ answer }) => answer ?? []),
      )
    },
    async issuers() {
      const answers = await askAll(members(), (worker) => worker.call('issuers', undefined, reportTimeoutMs))
      return mergeIssuers(answers.flatMap(({ answer }) => (answer ? [answer] : [])))
    },
    async session(sid) {
      const answers = await askAll(members(), (worker) => worker.call('session', { sid }, reportTimeoutMs))
      return {
        // One that does not answer may still take such tokens.
        ended: answers.length > 0 && answers.every(({ answer }) => answer?.ended === true),
        followed: answers.every(({ answer }) => answer?.followed !== false),
      }
    },
    async differences() {
      const answers = await askAll(members(), (worker) => worker.call('differences', undefined, reportTimeoutMs))
      return answers
        .flatMap(({ answer }) => answer ?? [])
        .sort((one, other) => (one.timestamp < other.timestamp ? 1 : -1))
    },
  }
}
