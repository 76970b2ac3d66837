import { createServer } from 'node:http'
import { stringify } from 'yaml'
import { parseGatewayConfig } from '../../gateway/main.ts'
import { canonicalTarget } from '../../gateway/request/canonical-target.ts'
import { createRouter } from '../../gateway/routing/router.ts'
import { listen, runServer } from '../harness/server.ts'

export type RoutesTargetSettings = { routes: number; matches: number }

const services = 100

/** A table as operators write them: some services, their resources, an item below each, and methods of their own. */
const entry = (index: number) => ({
  id: `r${index}`,
  path: `/api/service-${index % services}/resource-${index}/{id}${index % 2 === 0 ? '/**' : ''}`,
  methods: index % 3 === 0 ? ['GET', 'POST'] : [],
  auth: 'none',
  upstream: 'api',
})

/**
 * Answers each request after `matches` look-ups, from request target to route, of paths spread over the whole table,
 * one in ten of them without a route.
 */
runServer(({ routes: count, matches }: RoutesTargetSettings) => {
  const file = {
    version: 1,
    upstreams: { api: { url: 'http://localhost' } },
    routes: Array.from({ length: count }, (_, index) => entry(index)),
  }
  const { routes } = parseGatewayConfig(stringify(file), { file: 'gateway.yaml', env: {} })
  const router = createRouter(routes)
  // A stride that is prime to both counts visits all of them, not in their order.
  const targets = Array.from({ length: matches }, (_, turn) => {
    const index = (turn * 7_919) % count
    const resource = turn % 10 === 9 ? `resource-${index}-unknown` : `resource-${index}`
    return `/api/service-${index % services}/${resource}/${turn}`
  })
  const server = createServer((_request, response) => {
    let found = 0
    for (const target of targets) {
      // Read each time, as a gateway does: segments that were looked for before would be cheaper to look for.
      if (router.match('api.example.test', 'GET', canonicalTarget(target).segments)) found++
    }
    response.end(`found ${found}`)
  })
  return listen(server)
})
