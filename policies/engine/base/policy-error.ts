/**
 * Where a rule file is wrong. `file` is relative to the folder of rules; `line` and `column` count from 1 and may be
 * unknown.
 */
export interface CompileIssue {
  file?: string
  line?: number
  column?: number
  message: string
}

/**
 * - `invalid`: what was given cannot be used: rules, a bundle or its signature, the name of an entrypoint, an input
 *   that is too large.
 * - `failed`: the evaluation came to no answer: rules that contradict each other, an answer that is too large.
 * - `units_used_up`, `memory_used_up`: it wanted more than it may have. The same input would again.
 * - `deadline_missed`: its thread was ended, since a function took too long.
 * - `busy`: no thread came free. Nothing was evaluated: ask again.
 */
export type PolicyErrorCode = 'invalid' | 'failed' | 'units_used_up' | 'memory_used_up' | 'deadline_missed' | 'busy'

/**
 * A policy cannot be compiled, loaded or evaluated. Callers deny; the message is for the operator's log, never for a
 * caller.
 */
export class PolicyError extends Error {
  override readonly name: string = 'PolicyError'
  readonly code: PolicyErrorCode
  /** Of rules that do not compile. */
  readonly issues: readonly CompileIssue[]

  /** @param options.code Default `invalid`. */
  constructor(
    message: string,
    options: { code?: PolicyErrorCode; issues?: readonly CompileIssue[]; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.code = options.code ?? 'invalid'
    this.issues = options.issues ?? []
  }
}

/** No thread came free for an isolated evaluation in time. Not the rules' answer: callers may ask again. */
export class PolicyBusy extends PolicyError {
  override readonly name = 'PolicyBusy'

  constructor(message: string) {
    super(message, { code: 'busy' })
  }
}

/** An evaluation used up its units of work. The same input would do so again, on every machine. */
export class UnitsUsedUp extends PolicyError {
  override readonly name = 'UnitsUsedUp'

  constructor(units: number) {
    super(`the policy used up its ${units} units of work`, { code: 'units_used_up' })
  }
}

/** Rules have to be compiled and there is nothing to compile them with. */
export class CompilerMissing extends PolicyError {}

/** One line an issue: `gateway/orders.rego:3:7: undefined ref: input.roote`. */
export const issueLine = ({ file, line, column, message }: CompileIssue): string =>
  [file, line, column, ` ${message}`]
    .filter((part) => part !== undefined)
    .join(':')
    .trim()
