import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * Where the files of the console are: in the package, or in a checkout where they are built when the sources have
 * changed. Undefined: not built, and nothing to build it with.
 */
export const consoleFolder = async (): Promise<string | undefined> => {
  const packaged = fileURLToPath(new URL('../../console', import.meta.url))
  if (existsSync(packaged)) return packaged
  // Not by its name alone, by which the compiler would put it into the package.
  const builder = new URL('../build/console.ts', import.meta.url)
  if (!existsSync(builder)) return undefined
  const { buildConsole } = (await import(builder.href)) as Builder
  return buildConsole(() => void process.stderr.write('Building the console: its sources have changed.\n'))
}

interface Builder {
  buildConsole(building: () => void): Promise<string | undefined>
}
