import type { HostBuiltin } from './index.ts'

/** What `print(…)` in a rule becomes: one list whose items are the sets of values that an argument can have, empty when undefined. */
export const printBuiltins: Record<string, HostBuiltin> = {
  'internal.print': ([args], { print }) => {
    const shown = (args as unknown[][]).map((values) =>
      values.length === 0 ? '<undefined>' : values.map(show).join('|'),
    )
    print(shown.join(' '))
    return true
  },
}

const show = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
