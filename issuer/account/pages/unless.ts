import { AppError } from '../../../platform/problem.ts'
import type { ProblemCode } from '../../base/errors/problems.ts'

/** What comes of it; undefined when it is refused with one of these codes. */
export const unless = async <Result>(work: Promise<Result>, ...codes: ProblemCode[]): Promise<Result | undefined> => {
  try {
    return await work
  } catch (error) {
    if (error instanceof AppError && codes.some((code) => code === error.code)) return undefined
    throw error
  }
}
