import { parseArgs } from 'node:util'
import { StartupError } from '../../platform/startup-error.ts'

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>

/** The options of a command; anything it does not know is a usage error (exit code 2). */
export const parseOptions = <const Wanted extends Options>(
  args: readonly string[],
  options: Wanted,
  { positionals = false } = {},
) => {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: positionals })
  } catch (cause) {
    const { message } = cause as Error
    throw new StartupError(message.split('. ')[0]!, { hint: 'See surrogate --help.', cause })
  }
}
