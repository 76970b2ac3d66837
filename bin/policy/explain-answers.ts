import { stat } from 'node:fs/promises'
import { silentLogger } from '../../platform/logger.ts'
import { createSemaphore } from '../../platform/semaphore.ts'
import { explain, explanationLines } from '../../policies/authoring/explain.ts'
import { ApiError, invalid } from '../../policies/data-api/api-error.ts'
import type { DataParts } from '../../policies/data-api/data-endpoint.ts'
import { loadPolicies, PolicyError } from '../../policies/decide.ts'
import { findOpa, readSources } from '../../policies/engine/index.ts'

/** Explanations that may wait for the one that is made. */
const mostWaiting = 4
/** A decision takes some 2 000. OPA's interpreter has no bound, and keeps some kB for each step. */
const mostUnits = 100_000

/**
 * What `?explain` answers, where there is a folder of rules and a compiler; else undefined. Each takes a process of
 * OPA's, so there is one at a time, and only of decisions that take little work.
 */
export const explainAnswers = async (path: string, opaBin: string | undefined): Promise<DataParts['explain']> => {
  const found = await stat(path).catch(() => undefined)
  const opa = found?.isDirectory() ? await findOpa({ opaBin }).catch(() => undefined) : undefined
  if (opa === undefined) return undefined
  const withPermit = createSemaphore({
    permits: 1,
    maxWaiting: mostWaiting,
    full: () => new ApiError(503, 'internal_error', 'too many explanations are asked for'),
  })
  return ({ entrypoint }, input) =>
    withPermit(async () => {
      const question = { entrypoint, input }
      await requireLittleWork({ path, opaBin, ...question })
      const { rules } = await explain({ sources: await readSources(path), opa, ...question })
      return explanationLines(rules)
    })
}

/** Of the rules that are in the folder now, and without the memory of answers, which take no work. */
const requireLittleWork = async (options: {
  path: string
  opaBin: string | undefined
  entrypoint: string
  input: unknown
}): Promise<void> => {
  const { path, opaBin, entrypoint, input } = options
  const set = await loadPolicies({ path, opaBin, logger: silentLogger, remember: false, units: mostUnits })
  try {
    set.evaluate(entrypoint, input)
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    throw invalid(`the decision takes more than ${mostUnits} units of work, which is too much to be explained`)
  }
}
