import { describe, expect, test } from 'vitest'
import { canonicalTarget, queryParameters } from '../../../gateway/request/canonical-target.ts'
import { AppError } from '../../../platform/problem.ts'

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
  test.each([
    ['nothing', ''],
    ['the asterisk form', '*'],
    ['the absolute form', 'http://evil.test/admin'],
    ['the authority form', 'evil.test:443'],
    ['no slash', 'orders'],
    ['a network path', '//evil.test/admin'],
    ['an empty segment', '/a//b'],
    ['two final slashes', '/a//'],
    ['nothing but parameters', '/a/;v=1/b'],
    ['nothing but encoded parameters', '/a/%3Bv=1'],
    ['nothing but parameters at the end', '/a/;'],
    ['a dot segment', '/a/../b'],
    ['a final dot segment', '/a/..'],
    ['a single dot', '/./a'],
    ['a final single dot', '/a/.'],
    ['an encoded dot segment', '/a/%2e%2E/b'],
    ['a half encoded dot segment', '/a/.%2e/b'],
    ['a twice encoded dot segment', '/a/%252e%252e/b'],
    ['a thrice encoded dot', '/a/%25252e/b'],
    ['dots before a slash that is encoded twice', '/a/..%252fb'],
    ['dots before a slash that is encoded twice, in capitals', '/a/%2e%2E%252Fb'],
    ['dots and slash encoded twice', '/a/%252e%252e%252fb'],
    ['dots and slash encoded differently often', '/a/%252e.%25252fb'],
    ['dots behind a slash that is encoded twice', '/a/x%252f..'],
    ['dots between slashes that are encoded twice', '/a/x%252f%2e%252fb'],
    ['dots before a backslash that is encoded twice', '/a/..%255cb'],
    ['dots before a parameter that is encoded twice', '/a/..%253bv=1/b'],
    ['dots whose digits are encoded too', '/a/%25%2532%2565%252e/b'],
    ['more encodings than anybody needs', `/a/%${'25'.repeat(20)}41`],
    ['a dot segment with a parameter', '/a/..;x=1/b'],
    ['a dot segment with an encoded parameter', '/a/..%3Bx/b'],
    ['dot segments behind an encoded slash', '/a/x%2f..%2fb'],
    ['a backslash', '/a\\b'],
    ['an encoded backslash', '/a%5Cb'],
    ['an encoded backslash in lower case', '/a%5cb'],
    ['NUL', '/a%00'],
    ['a line break', '/a%0d%0aHost:%20x'],
    ['DEL', '/a%7f'],
    ['invalid UTF-8', '/%ff'],
    ['overlong UTF-8', '/%c0%ae%c0%ae/b'],
    ['a surrogate in UTF-8', '/%ed%a0%80'],
    ['cut UTF-8', '/%e2%82'],
    ['a lone percent', '/a%'],
    ['a percent with one digit', '/a%2'],
    ['a percent with other characters', '/a%zz'],
    ['a fragment', '/a#b'],
    ['a fragment in the query', '/a?b#c'],
    ['a space', '/a b'],
    ['raw UTF-8', '/caf\u00e9'],
    ['a character beyond Latin-1', '/\u{1f600}'],
    ['quotes', '/"a"'],
    ['brackets', '/a[0]'],
    ['braces', '/{a}'],
    ['a pipe', '/a|b'],
    ['a caret', '/a^b'],
    ['a backtick', '/`'],
    ['angles', '/<a>'],
    ['a control character', '/a\u0001'],
    ['brackets in the query', '/a?x[0]=1'],
    ['a bad escape in the query', '/a?x=%'],
    ['a cut escape in the query', '/a?x=%4'],
    ['invalid UTF-8 in the query', '/a?x=%ff'],
    ['raw UTF-8 in the query', '/a?x=\u00e9'],
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
