import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * They take long, and look small. They begin first, in this order: the two chaos tests do not
 * meet. The rest comes as always from large to small, so that the workers end together.
 */
const first = [
  'test/e2e/start.test.ts',
  'test/chaos/variants.test.ts',
  'test/events/jetstream.test.ts',
  'test/e2e/package.test.ts',
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
 * Three workers for the two cores of the reference machine: many tests wait for what they have started.
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
          setupFiles: process.env['SENT_STATEMENTS'] ? ['test/setup/sent-statements.ts'] : [],
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
    // Each set of rules reserves memory of WebAssembly, for which V8 would look through the whole heap of a worker: a
    // fifth of a second for each gateway that a test starts. With these it waits until the heap has grown.
    execArgv: ['--external-memory-accounted-in-global-limit', '--initial-old-space-size=1024'],
    maxWorkers: 3,
  },
})
