import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Take half a minute or more, and look small. They begin first, the rest as always from large to small, so that both workers end together. */
const longest = ['test/chaos/variants.test.ts', 'test/chaos/chaos.test.ts', 'test/e2e/start.test.ts']

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => longest.some((name) => moduleId.endsWith(name))
    const { long = [], others = [] } = Object.groupBy(await super.sort(files), (file) =>
      isLong(file) ? 'long' : 'others',
    )
    return [...long, ...others]
  }
}

/**
 * Two projects: `architecture` needs nothing and is part of `npm run check`; `suite` runs against real servers.
 * Two workers, because the reference machine has two cores and the databases and servers under test need theirs.
 */
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'architecture', include: ['test/architecture.test.ts'] } },
      {
        test: {
          name: 'suite',
          include: ['test/**/*.test.ts'],
          exclude: ['test/architecture.test.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          // A worker loads the product once, not once a file: half of the time of most files. What a file changes in the process it undoes.
          isolate: false,
          // How long a machine may take that does something else as well; nothing waits so long when all is well.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll: { interval: 10, timeout: 25_000 } },
        },
      },
    ],
    sequence: { sequencer: LongestFirst },
    pool: 'forks',
    maxWorkers: 2,
  },
})
