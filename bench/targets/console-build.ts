import { answerCalls } from '../harness/calls.ts'

/**
 * As much of a start as the console takes, in ms: from loading what builds it to the folder with its files. `into`:
 * where builds are kept.
 */
answerCalls({
  start: async ({ into }: { into: string }): Promise<number> => {
    const started = performance.now()
    const { buildConsole } = await import('../../bin/build/console.ts')
    const folder = await buildConsole(() => {}, into)
    if (folder === undefined) throw new Error('there is no Vite to build the console with')
    return performance.now() - started
  },
})
