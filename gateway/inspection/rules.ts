import { stat } from 'node:fs/promises'
import { createSemaphore } from '../../platform/semaphore.ts'
import { type RuleTest, testRules } from '../../policies/authoring/check.ts'
import { type ExplainedRule, explain } from '../../policies/authoring/explain.ts'
import type { PolicySet } from '../../policies/decide.ts'
import {
  CompilerMissing,
  findOpa,
  firstDifference,
  hashSources,
  PolicyError,
  readSources,
  type Sources,
} from '../../policies/engine/index.ts'
import { isAddress } from '../../policies/origin.ts'
import type { GatewayConfig } from '../config/load.ts'
import { problem } from '../refusals/problems.ts'
import type { EvaluationQuestion } from './evaluation.ts'
import { toldRules } from './told-rules.ts'

/**
 * What only OPA's interpreter can tell of rules, where it is at hand and the policies are a folder. One process of it
 * at a time, for a minute at most.
 */
export interface Rules {
  /**
   * The rules that were asked; undefined where that cannot be told. Not for more than `mostExplained` units: a trace is
   * as long as the work. Throws `AppError` 503 when too many wait.
   */
  explain(
    settings: GatewayConfig['policies'],
    policies: PolicySet,
    question: EvaluationQuestion,
  ): Promise<ExplainedRule[] | undefined>
  /** Runs the tests in the folder. Throws `AppError`. */
  test(settings: GatewayConfig['policies']): Promise<{ passed: boolean; report: string; tests: RuleTest[] }>
}

/** What an evaluation may have taken to be traced; its trace is read on this thread. */
export const mostExplained = 100_000

const mostWaiting = 4

export const createRules = ({ opaBin }: { opaBin: string | undefined }): Rules => {
  const busy = () => problem('policy_unavailable', { headers: { 'retry-after': '5' } })
  const oneAtATime = createSemaphore({ permits: 1, maxWaiting: mostWaiting, full: busy })
  let found: Promise<string> | undefined
  /** Looked for until it is there: to ask a program for its version takes as long as to ask it something. */
  const compiler = (): Promise<string> => {
    found ??= findOpa({ opaBin }).catch((error: unknown) => {
      found = undefined
      throw error
    })
    return found
  }
  return {
    explain: ({ path, verify }, policies, question) =>
      oneAtATime(async () => {
        if (verify || !(await isFolder(path))) return undefined
        try {
          const [sources, opa] = await Promise.all([readSources(path), compiler()])
          if (!areInForce(sources, policies)) return undefined
          return toldRules((await explain({ sources, opa, ...question })).rules, question.input)
        } catch (error) {
          if (error instanceof PolicyError) return undefined
          throw error
        }
      }),
    test: ({ path }) =>
      oneAtATime(async () => {
        if (!(await isFolder(path))) {
          throw problem('not_found', { detail: 'The policies are no folder of rules that could be tested.' })
        }
        try {
          const sources = await readSources(path, { tests: true })
          return await testRules({ sources, opa: await compiler() })
        } catch (error) {
          if (error instanceof CompilerMissing) {
            throw problem('server.unavailable', { detail: 'There is no compiler where the gateway runs.' })
          }
          if (error instanceof PolicyError) return { passed: false, report: error.message, tests: [] }
          throw error
        }
      }),
  }
}

/** Files may have changed since the policies were compiled, or have been refused. */
const areInForce = (sources: Sources, policies: PolicySet): boolean => {
  const built = policies.forThread?.().sources
  return built !== undefined && firstDifference(built, hashSources(sources)) === undefined
}

const isFolder = async (path: string): Promise<boolean> =>
  !isAddress(path) && ((await stat(path).catch(() => undefined))?.isDirectory() ?? false)
