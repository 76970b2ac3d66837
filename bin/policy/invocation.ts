/**
 * What a `surrogate policy …` command is given. Throws `PolicyError` for what is wrong with rules or cases; answers
 * with the exit code.
 */
export interface Invocation {
  /** The folder of rules. */
  path: string
  values: Readonly<Partial<Record<string, string>>>
  flags: Readonly<Partial<Record<string, boolean>>>
  /** Of options that may be repeated. */
  lists: Readonly<Partial<Record<string, string[]>>>
  positionals: readonly string[]
  opa: () => Promise<string>
  say: (line: string) => void
  /** For errors. */
  complain: (line: string) => void
}

/** The usage was wrong; the message says how. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const number = (values: Invocation['values'], name: string): number | undefined => {
  const text = values[name]
  if (text === undefined) return undefined
  if (text.trim() === '' || !Number.isFinite(Number(text)) || Number(text) < 0)
    throw new UsageError(`--${name} must be a number`)
  return Number(text)
}
