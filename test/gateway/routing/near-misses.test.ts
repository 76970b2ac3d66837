import { describe, expect, test } from 'vitest'
import { missText, nearMisses } from '../../../gateway/routing/near-misses.ts'
import { type PathPattern, parsePattern } from '../../../gateway/routing/path-pattern.ts'
import { createRouter, findConflicts, type Routable } from '../../../gateway/routing/router.ts'
import { nothingIsEqual } from '../../../policies/path-equality.ts'
import { createRandom } from '../fuzz/random.ts'

const route = (id: string, path: string, more: Partial<Routable> = {}): Routable => ({
  id,
  hosts: [],
  methods: [],
  pattern: parsePattern(path) as PathPattern,
  pathEquality: nothingIsEqual,
  ...more,
})

const segmentsOf = (path: string) => (path === '/' ? [] : path.slice(1).split('/').map(decodeURIComponent))

const asked = (path: string, { method = 'GET', host = 'a.test' } = {}) => ({ method, host, segments: segmentsOf(path) })

describe('what keeps a route from taking a request', () => {
  test.each<[string, Partial<Routable>, string, string]>([
    ['/orders/{id}', { methods: ['POST'] }, '/orders/42', 'takes POST only'],
    ['/orders/**', { hosts: ['b.test'] }, '/orders/42', 'is for b.test only'],
    ['/orders', {}, '/orders/', 'has no slash at its end'],
    ['/orders/', {}, '/orders', 'ends in a slash'],
    ['/orders', {}, '/Orders', 'says "orders" where the request says "Orders": case counts'],
    ['/orders', {}, '/oders', 'says "orders" where the request says "oders"'],
    ['/v1/orders', {}, '/v2/orders', 'says "v1" where the request says "v2"'],
    ['/orders/{id}', {}, '/orders/42/items', 'has no segment for "items"'],
    ['/orders/{id}', {}, '/api/orders/42', 'has no segment for "api"'],
    ['/api/orders/{id}', {}, '/orders/42', 'has the segment "api" as well'],
    ['/orders/{id}', {}, '/orders', 'has one segment more'],
    ['/files/{a}/{b}', {}, '/files/a%2Fb', 'has a slash where the request has %2F, which is part of a segment'],
    [
      '/orders/**',
      { methods: ['POST'] },
      '/oders/1',
      'says "orders" where the request says "oders", and takes POST only',
    ],
  ])('%s %j and %s: %s', (pattern, more, path, because) => {
    const found = nearMisses([route('r', pattern, more)], asked(path))
    expect(found.map(({ differences }) => missText(differences))).toEqual([because])
  })

  test.each<[string, Partial<Routable>, string]>([
    ['/orders/{id}', {}, '/orders/42'],
    ['/customers', {}, '/orders'],
    ['/orders/{id}/items/{item}', {}, '/orders'],
    ['/a/b', {}, '/c/d'],
    ['/files/{a}/{b}', { methods: ['POST'], hosts: ['b.test'] }, '/files/a%2F%2Fb'],
    ['/orders', { methods: ['POST'], hosts: ['b.test'] }, '/oders/'],
  ])('%s %j takes %s or is nothing like it', (pattern, more, path) => {
    expect(nearMisses([route('r', pattern, more)], asked(path))).toEqual([])
  })

  test('the nearest come first, and no more than are asked for', () => {
    const routes = [
      route('more', '/orders/{id}/items'),
      route('other-host', '/orders/{id}', { hosts: ['b.test'] }),
      route('post', '/orders/{id}', { methods: ['POST'] }),
      route('slash', '/orders/{id}/', { methods: ['GET'] }),
    ]
    const found = nearMisses(routes, asked('/orders/42'), 3)
    expect(found.map(({ route: { id } }) => id)).toEqual(['slash', 'post', 'more'])
  })
})

/** Paths over few names, so that many are near each other. */
const names = ['orders', 'Orders', 'order', 'items', 'v1', 'v2', 'a b', 'x/y']

const randomRoutes = (seed: number): Routable[] => {
  const random = createRandom(seed)
  const routes: Routable[] = []
  const literals = names.filter((name) => !name.includes('/'))
  for (let index = 0; index < 30; index++) {
    const parts = Array.from({ length: random.int(4) }, (_, at) =>
      random.chance(0.3) ? `{p${at}}` : random.pick(literals),
    )
    const end = random.chance(0.25) ? '/**' : random.chance(0.15) && parts.length > 0 ? '/' : ''
    const one = route(`r${index}`, `/${parts.join('/')}${parts.length === 0 ? end.replace(/^\//, '') : end}`, {
      methods: random.chance(0.5) ? [random.pick(['GET', 'POST'])] : [],
      hosts: random.chance(0.5) ? [random.pick(['a.test', 'b.test', 'b.test:8080'])] : [],
      pathEquality: {
        case: random.chance(0.2) ? 'insensitive' : 'sensitive',
        trailingSlash: random.chance(0.2) ? 'ignore' : 'significant',
      },
    })
    if (findConflicts([...routes, one]).length === 0) routes.push(one)
  }
  return routes
}

test('a near miss takes nothing of the request, and takes the similar request that is named', () => {
  let misses = 0
  let similar = 0
  for (let seed = 1; seed <= 300; seed++) {
    const routes = randomRoutes(seed)
    const random = createRandom(seed + 1_000)
    for (let round = 0; round < 20; round++) {
      const segments = Array.from({ length: random.int(5) }, () => random.pick(names))
      if (segments.length > 0 && random.chance(0.2)) segments.push('')
      const request = {
        method: random.pick(['GET', 'POST']),
        host: random.pick(['a.test', 'b.test:8080', 'c.test']),
        segments,
      }
      for (const { route: near, differences, takes } of nearMisses(routes, request, 10)) {
        misses++
        const told = JSON.stringify({ seed, request, near, differences, takes })
        const router = createRouter([near])
        expect(router.match(request.host, request.method, segments), told).toBeUndefined()
        expect(differences.length, told).toBeGreaterThan(0)
        if (!takes) continue
        similar++
        expect(router.match(takes.host, takes.method, takes.segments), told).toBe(near)
      }
    }
  }
  expect(misses).toBeGreaterThan(1_000)
  expect(similar).toBeGreaterThan(1_000)
})

test('a route that takes the request is never among them', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const routes = randomRoutes(seed)
    const random = createRandom(seed)
    const router = createRouter(routes)
    const segments = Array.from({ length: random.int(4) }, () => random.pick(names))
    const matched = router.match('a.test', 'GET', segments)
    const found = nearMisses(routes, { method: 'GET', host: 'a.test', segments }, 30)
    expect(found.map(({ route: { id } }) => id)).not.toContain(matched?.id ?? 'none')
  }
})

test('10 000 routes are looked at', () => {
  const routes = Array.from({ length: 10_000 }, (_, index) => route(`r${index}`, `/api/thing${index}/{id}/**`))
  const found = nearMisses(routes, asked('/api/thnig5432/7'))
  expect(found[0]?.route.id).toBe('r5432')
  expect(found).toHaveLength(5)
})
