import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from '../harness/comparison.ts'
import { spread } from '../harness/measure.ts'
import { everywhere } from '../harness/process.ts'
import { range } from '../harness/report.ts'
import type { Stage } from '../harness/stage.ts'
import { verdict } from './sign-in-world.ts'

const staleAtMostMs = 5_000
const builtAtMostMs = 50

/** How long `npm start` waits for the console: built anew, and when nothing has changed. */
export const measureBuilds = async (stage: Stage, rounds: number): Promise<Page> => {
  const { stale, built } = await buildsOf(stage, rounds)
  const row = (name: string, ms: number[], atMostMs: number) => {
    const over = spread(ms)
    return [name, range(over, 0), `≤ ${atMostMs} ms`, verdict(over.median <= atMostMs)]
  }
  return {
    tables: [
      [
        ['what `npm start` waits for the console', 'ms', 'bar', ''],
        row('its sources have changed', stale, staleAtMostMs),
        row('nothing has changed', built, builtAtMostMs),
      ],
    ],
    figures: { stale, built },
  }
}

const buildsOf = async (stage: Stage, rounds: number) => {
  const stale: number[] = []
  const built: number[] = []
  for (let round = 0; round < rounds; round++) {
    const into = await mkdtemp(join(tmpdir(), 'surrogate-bench-console-'))
    try {
      stale.push(await startOnce(stage, into))
      built.push(await startOnce(stage, into))
    } finally {
      await rm(into, { recursive: true })
    }
  }
  return { stale, built }
}

/** A process of its own each time, as a start is. */
const startOnce = async (stage: Stage, into: string): Promise<number> => {
  const file = new URL('../targets/console-build.ts', import.meta.url)
  const { process, result } = await stage.start<number>(file, everywhere, { into })
  await process.stop()
  return result
}
