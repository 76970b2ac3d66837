import { defineConfig } from 'vitest/config'

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
          // How long a machine may take that does something else as well; nothing waits so long when all is well.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll: { interval: 10, timeout: 25_000 } },
        },
      },
    ],
    pool: 'forks',
    maxWorkers: 2,
  },
})
