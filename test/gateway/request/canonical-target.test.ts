import { describe, expect, test } from 'vitest'
import { canonicalTarget, queryParameters } from '../../../gateway/request/canonical-target.ts'
import { AppError } from '../../../platform/problem.ts'
import { ambiguousTargets } from '../corpus/rows/targets.ts'

describe('targets that have one meaning', () => {
  test.each<[string, string, string[], string]>([
    ['/', '/', [], ''],
    ['/?', '/', [], '?'],
    ['/orders', '/orders', ['orders'], ''],
    ['/orders/', '/orders/', ['orders', ''], ''],
    ['/orders/42?x=1&x=2', '/orders/42', ['orders', '42'], '?x=1&x=2'],
    ['/%6Frders/%7Eme', '/orders/~me', ['orders', '~me'], ''],
    ['/a%20b/%c3%a9', '/a%20b/%C3%A9', ['a b', 'é'], ''],
    ['/first/%3a/last', '/first/%3A/last', ['first', ':', 'last'], ''],
    ["/a:b@c!$&'()*+,;=d", "/a:b@c!$&'()*+,;=d", ["a:b@c!$&'()*+,;=d"], ''],
    ['/...', '/...', ['...'], ''],
    ['/.well-known/x', '/.well-known/x', ['.well-known', 'x'], ''],
    ['/a..b/..c', '/a..b/..c', ['a..b', '..c'], ''],
    ['/100%25', '/100%25', ['100%'], ''],
    ['/a%252fb', '/a%252fb', ['a%2fb'], ''],
    ['/a%252e%252e%252fb', '/a%252e%252e%252fb', ['a%2e%2e%2fb'], ''],
    ['/%2525de', '/%2525de', ['%25de'], ''],
    ['/a?/../%2e%2e//', '/a', ['a'], '?/../%2e%2e//'],
    ['/a?x=%00%0a', '/a', ['a'], '?x=%00%0a'],
    ['/a??', '/a', ['a'], '??'],
    [`/${'x'.repeat(4000)}`, `/${'x'.repeat(4000)}`, ['x'.repeat(4000)], ''],
  ])('%s', (target, path, segments, query) => {
    const semicolon = path.includes(';')
    expect(canonicalTarget(target)).toEqual({
      path,
      segments,
      query,
      accessToken: false,
      encodedSlash: false,
      semicolon,
    })
  })

  test('the canonical path is its own canonical path', () => {
    for (const target of ['/%6F/%e2%82%ac/%3A', '/a%20%21%41/', '/%25%32%35']) {
      const { path } = canonicalTarget(target)
      expect(canonicalTarget(path).path).toBe(path)
    }
  })

  test('an encoded slash stays within its segment, and is told', () => {
    expect(canonicalTarget('/a%2fb/c')).toEqual({
      path: '/a%2Fb/c',
      segments: ['a/b', 'c'],
      query: '',
      accessToken: false,
      encodedSlash: true,
      semicolon: false,
    })
  })

  test('parameters of a segment are told, encoded ones too, those in the query not', () => {
    const targets = ['/a;v=1/b', '/a;/b', '/a/b%3bv', '/a?b;c', '/a/b']
    expect(targets.map((target) => canonicalTarget(target).semicolon)).toEqual([true, true, true, false, false])
  })
})

describe('targets that two readers could take for two things', () => {
  test.each<readonly [name: string, target: string]>([
    ...ambiguousTargets,
    ['a character beyond Latin-1', '/\u{1f600}'],
  ])('%s: %j', (_, target) => {
    let thrown: unknown
    try {
      canonicalTarget(target)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(AppError)
    expect(thrown).toMatchObject({ code: 'invalid_request', status: 400 })
  })
})

describe('the query as policies see it', () => {
  test.each<[string, Record<string, string[]>]>([
    ['', {}],
    ['?', {}],
    ['?a', { a: [''] }],
    ['?a=1&b=2&a=3', { a: ['1', '3'], b: ['2'] }],
    ['?a=1;b=2', { a: ['1;b=2'] }],
    ['?a+b=c+d%2B', { 'a b': ['c d+'] }],
    ['?%61=x&a=y', { a: ['x', 'y'] }],
    ['?&&a=1&', { a: ['1'] }],
    ['?=x', { '': ['x'] }],
    ['?a=b=c', { a: ['b=c'] }],
    ['?%C3%A9=%E2%82%AC', { é: ['€'] }],
  ])('%s', (query, expected) => {
    expect({ ...queryParameters(query) }).toEqual(expected)
  })

  test('names of object members are plain names', () => {
    const parameters = queryParameters('?__proto__=x&constructor=y&toString=z')
    expect(JSON.parse(JSON.stringify(parameters), (_, value) => value)).toBeDefined()
    expect(Object.entries(parameters)).toEqual([
      ['__proto__', ['x']],
      ['constructor', ['y']],
      ['toString', ['z']],
    ])
  })
})
