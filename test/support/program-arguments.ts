import { parseArgs } from 'node:util'

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>

/**
 * What a program was called with. For an option that it does not know, and for `misuse`, it says how it is used: exit
 * code 2.
 */
export const programArguments = <const Wanted extends Options>(
  usage: string,
  options: Wanted,
  { positionals = false } = {},
) => {
  const misuse = (problem: string): never => {
    console.error(`${problem}\nUsage: ${usage}`)
    process.exit(2)
  }
  try {
    return { ...parseArgs({ options, allowPositionals: positionals }), misuse }
  } catch (error) {
    return misuse((error as Error).message)
  }
}
