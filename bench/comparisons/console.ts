import { chromium } from '../../test/support/chromium.ts'
import type { Comparison, Page } from '../harness/comparison.ts'
import { seedManagement } from '../targets/management-seed-store.ts'
import { measureBuilds } from './console-build.ts'
import { measurePaints } from './console-paints.ts'
import { measureSizes } from './console-sizes.ts'
import { startConsoleWorld } from './console-world.ts'
import { startPostgres } from './issuer.ts'

/**
 * What a person waits for in the console, in a real browser and with a million users behind it, what the browser
 * loads, and how long a start waits for it to be built.
 */
export const adminConsole: Comparison = {
  name: 'console',
  title: 'The console in Chromium, with 1 000 000 users',
  fixedConnections: 1,
  async run(stage, { rounds }, progress) {
    progress('builds')
    const parts = { builds: await measureBuilds(stage, rounds) }
    if (chromium === undefined) return together({ ...parts, rest: notMeasured })
    progress('a million users')
    const world = await startConsoleWorld(stage, await seedManagement(await startPostgres(stage)))
    const sizes = await measureSizes(world, progress)
    const paints = await measurePaints(world, rounds, progress)
    return together({ sizes, paints, ...parts })
  },
}

const notMeasured: Page = { tables: [[['the rest is not measured'], ['there is no Chromium here']]], figures: [] }

const together = (parts: Record<string, Page>): Page => ({
  tables: Object.values(parts).flatMap(({ tables }) => tables),
  figures: Object.fromEntries(Object.entries(parts).map(([name, { figures }]) => [name, figures])),
})
