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
 * A policy cannot be compiled, loaded or evaluated. Callers deny; the message is for the operator's log, never for a
 * caller.
 */
export class PolicyError extends Error {
  override readonly name: string = 'PolicyError'
  readonly issues: readonly CompileIssue[]

  constructor(message: string, options: { issues?: readonly CompileIssue[]; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.issues = options.issues ?? []
  }
}

/** No thread came free for an isolated evaluation in time. Not the rules' answer: callers may ask again. */
export class PolicyBusy extends PolicyError {
  override readonly name = 'PolicyBusy'
}

/** An evaluation used up its units of work. The same input would do so again, on every machine. */
export class UnitsUsedUp extends PolicyError {
  override readonly name = 'UnitsUsedUp'

  constructor(units: number) {
    super(`the policy used up its ${units} units of work`)
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
