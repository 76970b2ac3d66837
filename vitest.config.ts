import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * They take long, and look small. They begin first, in this order: the two that run five processes and more do not
 * meet. The rest comes as always from large to small, so that both workers end together.
 */
const first = [
  'test/chaos/variants.test.ts',
  'test/e2e/start.test.ts',
  'test/events/jetstream.test.ts',
  'test/chaos/chaos.test.ts',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const index = first.findIndex((name) => moduleId.endsWith(name))
      return index === -1 ? first.length : index
    }
    return (await super.sort(files)).toSorted((left, right) => place(left) - place(right))
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
          // A worker loads the product once, not once a file: half of the time of most files. What a file changes in
          // the process it undoes.
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
