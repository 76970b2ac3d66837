import { stat } from 'node:fs/promises'
import { createSemaphore } from '../../platform/semaphore.ts'
import { explain, explanationLines } from '../../policies/authoring/explain.ts'
import { ApiError } from '../../policies/data-api/api-error.ts'
import type { DataParts } from '../../policies/data-api/data-endpoint.ts'
import { findOpa, readSources } from '../../policies/engine/index.ts'

/** Explanations that may wait for the one that is made. */
const mostWaiting = 4

/**
 * What `?explain` answers, where there is a folder of rules and a compiler; else undefined. Each takes a process of
 * OPA's, so there is one at a time, and only of questions that the compiled rules answered within their units.
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
      const { rules } = await explain({ sources: await readSources(path), opa, entrypoint, input })
      return explanationLines(rules)
    })
}
