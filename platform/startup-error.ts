/**
 * Something the operator must put right before the process can run. The CLI prints `message`, then `hint`, one line
 * each and no stack, and exits with `exitCode`: 2 = usage or configuration, 3 = something needed is unreachable.
 */
export class StartupError extends Error {
  override readonly name = 'StartupError'
  readonly exitCode: 2 | 3
  readonly hint: string

  constructor(message: string, options: { hint: string; exitCode?: 2 | 3; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.hint = options.hint
    this.exitCode = options.exitCode ?? 2
  }
}
