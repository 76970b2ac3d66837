import { StartupError } from '../../platform/startup-error.ts'

/** What a command reads and writes: those of the process, or of a test. */
export interface Terminal {
  env: NodeJS.ProcessEnv
  /** To stdout, as it is. */
  say(text: string): void
  /** To stderr, as it is. */
  complain(text: string): void
}

export const processTerminal: Terminal = {
  env: process.env,
  say: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
}

/**
 * The exit code of a command that threw. What the operator must put right is said in two lines; anything else is our
 * fault and comes with its stack.
 */
export const exitCodeOf = (error: unknown, { complain }: Pick<Terminal, 'complain'> = processTerminal): number => {
  if (error instanceof StartupError) {
    complain(`${error.message}\n${error.hint}\n`)
    return error.exitCode
  }
  complain(`${error instanceof Error ? error.stack : String(error)}\n`)
  return 1
}
