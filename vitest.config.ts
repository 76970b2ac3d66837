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
          testTimeout: 30_000,
          hookTimeout: 60_000,
          // A condition that is waited for may take long on a machine that is busy; the default is a second.
          expect: { poll: { timeout: 20_000, interval: 20 } },
        },
      },
    ],
    pool: 'forks',
    maxWorkers: 2,
  },
})
