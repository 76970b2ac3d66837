import { type InputReads, projectInput } from '../base/input-reads.ts'
import { PolicyError } from '../base/policy-error.ts'
import { createKnownAnswers, type KnownAnswers } from './known-answers.ts'

/**
 * What stands before an evaluation, on whichever thread that is: the part of the input that is read, and the answers
 * given lately.
 */
export interface Entrypoint {
  /** Its number in the module. */
  id: number
  reads: InputReads
  known: KnownAnswers | undefined
}

export interface EntrypointOptions {
  /** What each entrypoint reads of its input; the rest is not handed over. Without: everything is. */
  reads?: Readonly<Record<string, InputReads>> | undefined
  /** Whether an input that was answered before may be answered from memory. Default true; only speed differs. */
  remember?: boolean
}

/** By name; throws `PolicyError` for one that is not there. */
export const entrypointTable = (
  ids: Readonly<Record<string, number>>,
  { reads, remember = true }: EntrypointOptions,
): ((name: string) => Entrypoint) => {
  const table = new Map(
    Object.entries(ids).map(([name, id]) => {
      const known = remember ? createKnownAnswers() : undefined
      return [name, { id, reads: reads?.[name] ?? null, known }]
    }),
  )
  return (name) => {
    const found = table.get(name)
    if (!found) throw new PolicyError(`the policy has no entrypoint ${name}`)
    return found
  }
}

/** What the policy gets, as JSON. Throws `PolicyError` when it cannot be written. */
export const inputText = (input: unknown, { reads }: Entrypoint): string | undefined => {
  try {
    return JSON.stringify(projectInput(input, reads))
  } catch (error) {
    throw new PolicyError('the policy input cannot be written as JSON', { cause: error })
  }
}

/** Every answer is `[{"result":…}]`, or `[]` when no rule gave one. */
export const resultOf = (answer: string): unknown => (JSON.parse(answer) as { result: unknown }[])[0]?.result
