import { loadConfig } from '../../platform/config.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { howToRun } from '../cli/how-to-run.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'
import { demoFilePath, readDemoFile } from '../demo/demo-file.ts'
import { createNarrator, UnexpectedAnswer } from '../demo/narrator.ts'
import { walk } from '../demo/walk.ts'
import { outboxIn } from './messages.ts'

/** `surrogate demo`: 0 when every step was as expected, 1 when one was not, 3 when the demo is not running. */
export const demoCommand = async (args: readonly string[]): Promise<number> => {
  parseOptions(args, {})
  const { SURROGATE_DATA_DIR, MESSAGE_OUTBOX = outboxIn(SURROGATE_DATA_DIR) } = loadConfig(settings.demo, process.env)
  const demo = await readDemoFile(SURROGATE_DATA_DIR)
  if (demo?.data === undefined)
    throw new StartupError(`There is no demo yet: ${demoFilePath(SURROGATE_DATA_DIR)} does not tell of one.`, {
      hint: `Start it with "${howToRun.start}" in another terminal, then run this again.`,
      exitCode: 3,
    })
  const print = (line: string) => process.stdout.write(`${line}\n`)
  try {
    await walk({ ...demo, data: demo.data }, createNarrator(print), MESSAGE_OUTBOX)
  } catch (error) {
    if (!(error instanceof UnexpectedAnswer)) throw error
    print(`\n✗ ${error.message}`)
    return 1
  }
  print('\nEvery step was as expected.')
  return 0
}
