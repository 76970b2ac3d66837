import { requestFields } from '../../../support/http2-frames.ts'
import { forwarded, lines, type Row, refused } from '../row.ts'

/** On a route whose policy sees the body: JSON of 1 kB at most. */
const target = '/json'
const upstream = '/base/json'

const typed = ['Content-Type: application/json']
/** The bytes of a text, as rows write them. */
const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

/** What every parser reads the same: the upstream gets these very bytes. */
const taken: readonly (readonly [name: string, body: string])[] = [
  ['an object', '{"a":1}'],
  ['white space in odd places', ' {"a" :\t1,\r\n"b": [ ] }\n'],
  ['escapes', String.raw`{"\u0061":"\u00e9\/\ud83d\ude00"}`],
  ['characters beyond ASCII', utf8('{"é":"😀"}')],
  ['a list', '[1,"2",null,true,{}]'],
  ['a text alone', '"a"'],
  ['null', 'null'],
  ['the member __proto__', '{"__proto__":{"admin":true},"constructor":{}}'],
  ['the same name in two objects', '{"a":{"a":1},"b":{"a":1}}'],
  ['64 levels', `${'['.repeat(64)}${']'.repeat(64)}`],
  ['the largest integer that is exact', '{"a":9007199254740991,"b":-9007199254740991}'],
  ['numbers of every form', '[0,-0,0e999999,1.50,1E5,1e-7,5e-324,0.1,12345678901234567e3,1.7976931348623157e308]'],
  ['NUL as an escape', String.raw`{"a":"\u0000"}`],
]

/** What parsers read differently, or not at all. */
const ambiguous: readonly (readonly [name: string, body: string])[] = [
  ['a name twice', '{"role":"user","role":"admin"}'],
  ['a name twice, once escaped', String.raw`{"role":"user","r\u006fle":"admin"}`],
  ['a name twice, in another case', '{"role":"user","Role":"admin"}'],
  ['a name twice within', '{"a":[{"b":{"c":1,"d":2,"c":3}}]}'],
  ['__proto__ twice', '{"__proto__":1,"__proto__":2}'],
  ['the empty name twice', '{"":1,"":2}'],
  ['65 levels', `${'['.repeat(65)}${']'.repeat(65)}`],
  ['a depth bomb', `${'['.repeat(500)}${']'.repeat(500)}`],
  ['a depth bomb of objects', `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`],
  ['an unpaired surrogate', String.raw`{"a":"\ud800"}`],
  ['an unpaired surrogate in a name', String.raw`{"\udc00":1}`],
  ['surrogates in the wrong order', String.raw`{"a":"\ude00\ud83d"}`],
  ['UTF-8 that is cut off', '{"a":"\xf0\x9f\x98"}'],
  ['Latin-1', '{"a":"\xe9"}'],
  ['overlong UTF-8', '{"a":"\xc0\xaf"}'],
  ['a surrogate in UTF-8', '{"a":"\xed\xa0\x80"}'],
  ['a byte order mark', '\xef\xbb\xbf{"a":1}'],
  ['UTF-16', '\xff\xfe{\x00}\x00'],
  ['a number beyond doubles', '{"a":1e400}'],
  ['a number too small for doubles', '{"a":1e-400}'],
  ['an integer that is not exact', '{"a":9007199254740993}'],
  ['an integer that is not exact, negative', '[-9007199254740993]'],
  ['an integer that is not exact, with a fraction', '[9007199254740993.0]'],
  ['more digits than a double has', '{"a":100.000000000000001}'],
  ['an endless number', `[${'1'.repeat(900)}]`],
  ['nothing but white space', ' \n'],
  ['two values', '{"a":1}{"a":2}'],
  ['something behind the value', '{"a":1} x'],
  ['NUL behind the value', '{"a":1}\x00'],
  ['a comma at the end', '{"a":1,}'],
  ['a comment', '{"a":1/* */}'],
  ['single quotes', "{'a':1}"],
  ['a name without quotes', '{a:1}'],
  ['NaN', '{"a":NaN}'],
  ['a leading zero', '{"a":01}'],
  ['a plus', '{"a":+1}'],
  ['a line break in a text', '{"a":"\n"}'],
  ['a text without an end', '{"a":"b'],
  ['a form', 'a=1&b=2'],
]

const types: readonly (readonly [name: string, fields: readonly string[], isTaken: boolean])[] = [
  ['JSON in capitals', ['Content-Type: Application/JSON'], true],
  ['JSON in UTF-8', ['Content-Type: application/json; charset=utf-8'], true],
  ['JSON in UTF-8, quoted', ['Content-Type: application/json;charset="UTF-8"'], true],
  ['a type that ends in +json', ['Content-Type: application/merge-patch+json'], true],
  ['no coding', [...typed, 'Content-Encoding: identity'], true],
  ['no type', [], false],
  ['an empty type', ['Content-Type:'], false],
  ['plain text', ['Content-Type: text/plain'], false],
  ['JSON as text', ['Content-Type: text/json'], false],
  ['a form', ['Content-Type: application/x-www-form-urlencoded'], false],
  ['a type that begins like JSON', ['Content-Type: application/jsonx'], false],
  ['a type that ends in json', ['Content-Type: application/xjson'], false],
  ['JSON lines', ['Content-Type: application/json-seq'], false],
  ['two types in one field', ['Content-Type: application/json, text/plain'], false],
  ['another charset', ['Content-Type: application/json; charset=utf-16'], false],
  ['two charsets', ['Content-Type: application/json; charset=utf-8; charset=utf-16'], false],
  ['another parameter', ['Content-Type: application/json; boundary=x'], false],
  ['gzip', [...typed, 'Content-Encoding: gzip'], false],
  ['gzip in another spelling', [...typed, 'content-encoding: x-GZip'], false],
  ['two codings', [...typed, 'Content-Encoding: identity, gzip'], false],
]

const kB = (length: number) => `"${'a'.repeat(length - 2)}"`
const unsupported = refused(415, 'unsupported_media_type')

const framed = (name: string, body: string, fields: readonly string[], expect: Row['expect']): Row[] =>
  [false, true].map((chunked) => ({
    name: `a body for the policy: ${name}${chunked ? ', in chunks' : ''}`,
    request: { method: 'POST', target, fields, body, chunked },
    expect,
  }))

const http1 = (name: string, ...rest: readonly string[]): Row => ({
  name: `a body for the policy: ${name}`,
  http1: lines(`POST ${target} HTTP/1.1`, 'Host: api.test', ...typed, ...rest),
  expect: refused(),
})
const http2 = (name: string, length: number, body?: string): Row => ({
  name: `a body for the policy: ${name}`,
  http2: {
    fields: [
      ...requestFields(target, { method: 'POST' }),
      ['content-type', 'application/json'],
      ['content-length', String(length)],
    ],
    ...(body !== undefined && { body }),
  },
  expect: refused(),
})

const asReceived = (body: string) =>
  forwarded(upstream, {
    method: 'POST',
    body,
    fields: { 'content-length': String(body.length), 'transfer-encoding': undefined },
  })

export const policyBodyRows: readonly Row[] = [
  ...taken.flatMap(([name, body]) => framed(name, body, typed, asReceived(body))),
  ...ambiguous.flatMap(([name, body]) => framed(name, body, typed, refused())),
  ...types.flatMap(([name, fields, isTaken]) =>
    framed(`said to be ${name}`, '{}', fields, isTaken ? asReceived('{}') : unsupported),
  ),
  ...framed('as long as it may be', kB(1024), typed, asReceived(kB(1024))),
  ...framed('too long by a byte', kB(1025), typed, refused(413, 'content_too_large')),
  ...framed('too long by far', kB(10_000), typed, refused(413, 'content_too_large')),
  ...framed('of no bytes', '', [], forwarded(upstream, { method: 'POST', body: '' })),
  {
    name: 'a body for the policy: none',
    request: { target },
    expect: forwarded(upstream, { body: '', fields: { 'content-length': undefined } }),
  },
  {
    name: 'a body for the policy: of a GET',
    request: { target, fields: typed, body: '{"a":1}' },
    expect: forwarded(upstream, { body: '{"a":1}' }),
  },
  {
    name: 'a body for the policy: two types',
    request: { method: 'POST', target, fields: [...typed, 'Content-Type: text/plain'], body: '{}' },
    expect: refused(),
  },
  {
    name: 'a body for the policy: two codings',
    request: {
      method: 'POST',
      target,
      fields: [...typed, 'Content-Encoding: identity', 'Content-Encoding: gzip'],
      body: '{}',
    },
    expect: refused(),
  },
  http1('a bad chunk behind a good one', 'Transfer-Encoding: chunked', '', '2', '{}', 'zz', '{}', '0', '', ''),
  http1('a chunk that is longer than it says', 'Transfer-Encoding: chunked', '', '2', '{}{}', '0', '', ''),
  http1('two lengths', 'Content-Length: 2', 'Content-Length: 4', '', '{}{}'),
  http1('a length and chunks', 'Content-Length: 2', 'Transfer-Encoding: chunked', '', '2', '{}', '0', '', ''),
  http2('shorter than it says', 5, '{}'),
  http2('longer than it says', 2, '{}{}'),
  http2('promised and not there', 2),
]
