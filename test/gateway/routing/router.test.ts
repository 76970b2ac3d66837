import { describe, expect, test } from 'vitest'
import { type PathPattern, parsePattern } from '../../../gateway/routing/path-pattern.ts'
import { createRouter, findConflicts, type Routable } from '../../../gateway/routing/router.ts'
import { nothingIsEqual, type PathEquality } from '../../../policies/path-equality.ts'
import { createRandom } from '../fuzz/random.ts'

type TestRoute = Routable & { upstream: string }

const route = (id: string, path: string, more: Partial<TestRoute> = {}): TestRoute => ({
  id,
  hosts: [],
  methods: [],
  pattern: parsePattern(path) as PathPattern,
  pathEquality: nothingIsEqual,
  upstream: 'u',
  ...more,
})

const segmentsOf = (path: string) => (path === '/' ? [] : path.slice(1).split('/'))

/** Of `routes`, which one takes `method host path`. */
const winner = (routes: TestRoute[], path: string, { host = 'a.test', method = 'GET' } = {}) =>
  createRouter(routes).match(host, method, segmentsOf(path))?.id

describe('what a pattern matches', () => {
  test.each<[string, string, boolean]>([
    ['/', '/', true],
    ['/', '/a', false],
    ['/orders', '/orders', true],
    ['/orders', '/orders/', false],
    ['/orders', '/Orders', false],
    ['/orders/', '/orders/', true],
    ['/orders/', '/orders', false],
    ['/orders/{id}', '/orders/42', true],
    ['/orders/{id}', '/orders/', false],
    ['/orders/{id}', '/orders/42/', false],
    ['/orders/{id}', '/orders/42/items', false],
    ['/orders/**', '/orders', true],
    ['/orders/**', '/orders/', true],
    ['/orders/**', '/orders/42/items', true],
    ['/orders/**', '/ordersx', false],
    ['/**', '/', true],
    ['/**', '/a/b', true],
    ['/orders/{id}/**', '/orders/42', true],
    ['/orders/{id}/**', '/orders', false],
    ['/orders/{id}/items/{item}', '/orders/42/items/7', true],
    ['/café', '/café', true],
    ['/a:b', '/a:b', true],
  ])('%s and %s: %s', (pattern, path, expected) => {
    expect(winner([route('r', pattern)], path) === 'r').toBe(expected)
  })
})

describe('which of several routes wins', () => {
  const routes = [
    route('all', '/**'),
    route('rest', '/orders/**'),
    route('parameter', '/orders/{id}'),
    route('literal', '/orders/special'),
    route('deep', '/orders/{id}/items'),
    route('named', '/orders/{id}', { hosts: ['b.test'] }),
    route('port', '/orders/{id}', { hosts: ['b.test:8080'] }),
    route('post', '/orders/batch', { methods: ['POST'] }),
  ]
  test.each<[string, { host?: string; method?: string }, string]>([
    ['/orders/special', {}, 'literal'],
    ['/orders/42', {}, 'parameter'],
    ['/orders/special/items', {}, 'deep'],
    ['/orders/special/other', {}, 'rest'],
    ['/orders', {}, 'rest'],
    ['/other', {}, 'all'],
    ['/orders/42', { host: 'b.test' }, 'named'],
    ['/orders/special', { host: 'b.test' }, 'named'],
    ['/orders/42', { host: 'b.test:8080' }, 'port'],
    ['/orders/42', { host: 'b.test:9090' }, 'named'],
    ['/orders/42/items', { host: 'b.test' }, 'deep'],
    ['/orders/batch', { method: 'POST' }, 'post'],
    ['/orders/batch', { method: 'GET' }, 'parameter'],
  ])('%s %j → %s', (path, request, expected) => {
    expect(winner(routes, path, request)).toBe(expected)
    expect(winner(routes.toReversed(), path, request), 'whatever their order').toBe(expected)
  })

  describe('where an upstream takes spellings for the same', () => {
    const anyCase: PathEquality = { case: 'insensitive', trailingSlash: 'significant' }
    const anySlash: PathEquality = { case: 'sensitive', trailingSlash: 'ignore' }
    const both: PathEquality = { case: 'insensitive', trailingSlash: 'ignore' }
    const at =
      (pathEquality: PathEquality) =>
      (id: string, path: string, more: Partial<TestRoute> = {}) =>
        route(id, path, { pathEquality, ...more })

    test.each<[string, PathEquality, string]>([
      ['/app/report', both, 'report'],
      ['/app/report/', both, 'report'],
      ['/app/REPORT', both, 'report'],
      ['/APP/Report/', both, 'report'],
      ['/app/reports', both, 'rest'],
      ['/app/report/1', both, 'rest'],
      ['/app/report/', anyCase, 'rest'],
      ['/app/REPORT', anyCase, 'report'],
      ['/app/report/', anySlash, 'report'],
      ['/app/REPORT', anySlash, 'rest'],
      ['/APP/report', anySlash, 'none'],
      ['/App/Users/ABC/', both, 'user'],
      ['/app/users/ABC', anySlash, 'user'],
      ['/app/users/', both, 'rest'],
      ['/', both, 'none'],
      // Beyond ASCII upstreams differ.
      ['/app/\u212aey', both, 'rest'],
    ])('%s with %j → %s', (path, equality, expected) => {
      const routes = [
        at(equality)('report', '/app/report'),
        at(equality)('rest', '/app/**'),
        at(equality)('user', '/app/users/{id}'),
        at(equality)('key', '/app/key'),
      ]
      expect(winner(routes, path) ?? 'none').toBe(expected)
      expect(winner(routes.toReversed(), path) ?? 'none').toBe(expected)
    })

    test('a route that is written with the slash is the same one', () => {
      const routes = [at(anySlash)('report', '/app/Report/'), at(anySlash)('rest', '/app/**')]
      expect([winner(routes, '/app/Report'), winner(routes, '/app/Report/')]).toEqual(['report', 'report'])
    })

    test('routes to other upstreams keep to their own spelling', () => {
      const routes = [
        at(both)('folded', '/app/report'),
        at(both)('rest', '/app/**'),
        route('exact', '/APP/Report'),
        route('items', '/App/{id}/items'),
        route('slash', '/app/report/', { methods: ['GET'] }),
      ]
      const found = ['/APP/Report', '/app/report', '/app/Report', '/App/1/items', '/app/1/items', '/app/report/']
      expect(found.map((path) => winner(routes, path))).toEqual(['exact', 'folded', 'folded', 'items', 'rest', 'slash'])
      expect(found.map((path) => winner(routes.toReversed(), path)).at(-1)).toBe('slash')
      expect(winner(routes, '/app/report/', { method: 'POST' })).toBe('folded')
      expect(winner(routes, '/APP/Report/')).toBe('folded')
    })

    test('no spelling finds a weaker route to that upstream, whatever other routes there are', () => {
      const random = createRandom(1)
      const randomRoute = (id: number) => {
        const parts = Array.from({ length: random.int(4) }, (_, index) =>
          random.pick(['a', 'A', 'b', 'B', `{x${index}}`]),
        )
        const end = random.pick(['', '', '/', '/**'])
        const [upstream, pathEquality] = random.pick([['folding', both] as const, ['strict', nothingIsEqual] as const])
        const path = `/${parts.join('/')}${parts.length > 0 ? end : end.slice(1)}`
        return route(String(id), path, { upstream, pathEquality })
      }
      let compared = 0
      while (compared < 2_000) {
        const routes = Array.from({ length: 1 + random.int(6) }, (_, index) => randomRoute(index))
        if (findConflicts(routes).length > 0) continue
        const router = createRouter(routes)
        const folding = createRouter(routes.filter(({ upstream }) => upstream === 'folding'))
        const segments = Array.from({ length: random.int(4) }, () => random.pick(['a', 'b', 'c']))
        const wanted = folding.match('a.test', 'GET', segments)
        const spelt = segments.map((one) => (random.chance(0.5) ? one.toUpperCase() : one))
        if (spelt.length > 0 && random.chance(0.5)) spelt.push('')
        const found = router.match('a.test', 'GET', spelt)
        const what = JSON.stringify([routes.map(({ pattern, upstream }) => [pattern.text, upstream]), spelt])
        expect(folding.match('a.test', 'GET', spelt), what).toBe(wanted)
        if (found?.upstream !== 'strict') expect(found, what).toBe(wanted)
        compared++
      }
    })

    test('the exact one of two upstreams does not hide the more exact pattern of the other', () => {
      const routes = [at(both)('folded', '/app/report'), route('rest', '/app/**')]
      expect(winner(routes, '/app/report')).toBe('folded')
      expect(winner(routes, '/app/REPORT/')).toBe('folded')
      expect(winner(routes, '/app/other')).toBe('rest')
    })
  })

  test('a literal further left wins over one further right', () => {
    expect(winner([route('right', '/{x}/b'), route('left', '/a/{y}')], '/a/b')).toBe('left')
  })

  test('ten thousand routes are told apart', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => route(`r${index}`, `/v1/things-${index}/{id}`))
    const router = createRouter(many)
    expect(router.match('a.test', 'GET', ['v1', 'things-7777', '1'])?.id).toBe('r7777')
    expect(router.match('a.test', 'GET', ['v1', 'things-10000', '1'])).toBeUndefined()
  })
})

describe('routes that tie', () => {
  const folding: Partial<TestRoute> = { pathEquality: { case: 'insensitive', trailingSlash: 'ignore' } }
  const ties = (...routes: TestRoute[]) => findConflicts(routes).map(({ first, second }) => `${first.id} ${second.id}`)

  test.each<[string, Partial<TestRoute>, string, Partial<TestRoute>, boolean]>([
    ['/a/{x}', {}, '/a/{y}', {}, true],
    ['/a/**', {}, '/a/**', {}, true],
    ['/a', { methods: ['GET', 'POST'] }, '/a', { methods: ['POST'] }, true],
    ['/a', {}, '/a', { methods: ['POST'] }, true],
    ['/a', { methods: ['POST'] }, '/a', {}, true],
    ['/a', { methods: ['GET'] }, '/a', { methods: ['POST'] }, false],
    ['/a', { hosts: ['a.test', 'b.test'] }, '/a', { hosts: ['b.test'] }, true],
    ['/a', { hosts: ['a.test'] }, '/a', {}, false],
    ['/a', {}, '/a/', {}, false],
    ['/a', {}, '/a/**', {}, false],
    ['/a/{x}/c', {}, '/a/b/{y}', {}, false],
    ['/a', {}, '/A', {}, false],
    ['/a', folding, '/A', folding, true],
    ['/a', folding, '/a/', folding, true],
    ['/a/{x}', folding, '/A/{y}/', folding, true],
    ['/a', folding, '/A', { ...folding, methods: ['POST'] }, true],
    ['/a', { ...folding, methods: ['GET'] }, '/A', { ...folding, methods: ['POST'] }, false],
    ['/a', folding, '/A', {}, false],
    ['/a', folding, '/a', {}, true],
    ['/a', folding, '/a/', {}, false],
  ])('%s %j and %s %j: %s', (firstPath, first, secondPath, second, expected) => {
    const routes = [route('one', firstPath, first), route('two', secondPath, second)] as const
    expect(ties(...routes)).toEqual(expected ? ['one two'] : [])
    if (expected) expect(() => createRouter(routes)).toThrow('one and two')
  })
})

describe('patterns that cannot be read', () => {
  test.each([
    ['orders'],
    [''],
    ['/a//b'],
    ['//**'],
    ['/a/**/b'],
    ['/a*'],
    ['/{a}{b}'],
    ['/x{a}'],
    ['/{1a}'],
    ['/{__proto__}'],
    ['/{a}/{a}'],
    ['/a/../b'],
    ['/a%20b'],
    ['/a?b'],
    ['/a#b'],
    ['/a\\b'],
    ['/a;v=1'],
  ])('%s', (text) => {
    expect(parsePattern(text)).toEqual(expect.any(String))
  })
})
