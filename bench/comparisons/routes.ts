import type { Comparison, Contestant } from '../harness/comparison.ts'
import { underTest } from '../harness/process.ts'
import type { RoutesTargetSettings } from '../targets/routes.ts'

/** So many that the HTTP request around them costs next to nothing. */
const matches = 1_000

/** Whether a table of routes may grow: the same number of look-ups in one of 10, 1 000 and 10 000. */
export const routes: Comparison = {
  name: 'routes',
  title: `Route matching, ${matches} look-ups a request`,
  async prepare(stage) {
    const contestants: Contestant[] = []
    for (const count of [10, 1_000, 10_000]) {
      const settings: RoutesTargetSettings = { routes: count, matches }
      const server = await stage.serve(new URL('../targets/routes.ts', import.meta.url), underTest, settings)
      const request = `GET / HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n\r\n`
      contestants.push({
        name: `${count} routes`,
        server,
        requests: () => [request],
        expected: { status: 200, bodyIncludes: `found ${matches * 0.9}` },
      })
    }
    return { contestants, ratios: [{ of: '10000 routes', to: '10 routes', atMost: 2 }] }
  },
}
