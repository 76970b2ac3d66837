import type { Random } from './random.ts'

/** What one client sends on one connection. Bytes as latin1 text. */
export interface Conversation {
  text: string
  /** Where the text is cut into writes. */
  cuts: number[]
  /**
   * For conversations of well-formed requests: what the upstream must see of each, in order; undefined when anything
   * may happen.
   */
  wanted: { method: string; target: string; body: string }[] | undefined
}

const methods = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']
const oddMethods = [...methods, 'FOO', 'get', 'TRACE', 'CONNECT', 'PRI', 'QUERY', '', 'GET\t']

const targets: readonly (readonly [sent: string, canonical: string])[] = [
  ['/open/1', '/open/1'],
  ['/open/a%2db', '/open/a-b'],
  ['/open/caf%c3%a9?x=1&x=2', '/open/caf%C3%A9?x=1&x=2'],
  ['/open/', '/open/'],
  ['/open/a;b=c/d?q=%2F..%2f&r=a+b', '/open/a;b=c/d?q=%2F..%2f&r=a+b'],
  ['/open/%25?=&&a', '/open/%25?=&&a'],
]
const oddTargets = [
  ...targets.map(([sent]) => sent),
  ...[
    ...Array<string>(6).fill('/json/1'),
    '/orders/1',
    '/admin/secret',
    '/open/../admin',
    '/open/%2e%2e/admin',
    '/open/..;/admin',
    '/open/%252e%252e/admin',
    '/open/;/admin',
    '/open/..%252fadmin',
    '/open/%252e%252e%252fadmin',
    '/open/a?access_token=x&b',
    '/open/a?b=1;access%5ftoken=x',
    '/kept/a;b',
    '/kept/a%3bb',
  ],
  ...[
    '/open//admin',
    '//open/x',
    '/open\\..\\admin',
    '/open/%5c../admin',
    '/open/a%2fb',
    '/open/a%00b',
    '/open/%c0%ae',
  ],
  ...['http://open.test/open/x', 'http:///open', '*', 'open', '/open#/../admin', '/open?#x', '/open/%zz', '/open/%'],
  ...[
    '/open/\xe9',
    '/open/a b',
    '/open/\t',
    '/open/{x}',
    '/open?a=[b]',
    '/kept/a%2Fb',
    '/kept/%2e%2e%2fadmin',
    '/',
    '',
  ],
]
const oddVersions = [
  'HTTP/1.0',
  'HTTP/1.2',
  'HTTP/2.0',
  'HTTP/0.9',
  'http/1.1',
  'HTTP/1.1 ',
  'HTTP/11',
  'HTTPS/1.1',
  '',
]

const smuggled = 'GET /admin/smuggled HTTP/1.1\r\nHost: open.test\r\n\r\n'

const fields = ['Accept: */*', 'User-Agent: fuzz', 'Accept-Language: de', 'X-Policy: 1', 'Cookie: a=b', 'X-Odd: \xe9']
const oddFields = [
  ...fields,
  ...[
    'X-Policy: admin',
    'X_Policy: admin',
    'x.policy: admin',
    'Accept_Language: fr',
    'Proxy: http://evil.test',
    'Cookie: surrogate_session=x; a=b',
    'x-policy:2',
    'X-POLICY:\t3 ',
    'X-Policy:',
    'Accept-Language: \xff',
    `X-Very: ${'x'.repeat(900)}`,
  ],
  ...[
    'X-Auth-Sub: root',
    'X_Auth_Sub: root',
    'x.auth.sub: root',
    'X-Auth-Act: root',
    'X-Auth-Assertion: x',
    'X-Auth: x',
  ],
  ...[
    'X-Forwarded-For: 6.6.6.6',
    'X-Forwarded-Host: evil.test',
    'X_Forwarded_Host: evil.test',
    'Forwarded: for=6.6.6.6',
  ],
  ...['X-Forwarded-Proto: https', 'X-Original-URL: /admin', 'X-Rewrite-Url: /admin', 'X-HTTP-Method-Override: DELETE'],
  ...['X-Request-Id: forged', 'Via: 1.1 x', 'Authorization: Basic YTpi', 'Authorization: Bearer a.b.c'],
  ...[
    'Connection: keep-alive',
    'Connection: x-policy',
    'Connection: close, x-policy',
    'Connection: authorization, host',
  ],
  ...[
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQ',
    'Keep-Alive: timeout=9',
  ],
  ...['Proxy-Connection: keep-alive', 'Proxy-Authorization: Basic x', 'TE: trailers, gzip', 'Trailer: X-Auth-Sub'],
  ...['Expect: 100-continue', 'Expect: 200-ok', 'Host: evil.test', 'Host : open.test', ' folded: x', '\tfolded', ': x'],
  ...['X-Bare\nX-Auth-Sub: root', 'X-Cr\rX-Auth-Sub: root', 'X-Nul: a\0b', 'X-Ctl: a\x01b', 'X-Del: \x7f', 'No colon'],
  ...['Content-Length: 0', 'Content-Length: 5', 'Content-Length: +5', 'Content-Length: 0x5', 'Content-Length: 5, 5'],
  ...['Content-Length : 5', 'Content-Length: 99999999999999999999', 'Content-Length:', 'Content_Length: 5'],
  ...['Transfer-Encoding: chunked', 'Transfer-Encoding: xchunked', 'Transfer-Encoding: chunked, identity'],
  ...['Transfer-Encoding: gzip, chunked', 'Transfer-Encoding:\x0bchunked', 'Transfer-Encoding : chunked'],
  ...[
    'Transfer-Encoding: "chunked"',
    'Transfer-Encoding: chunked\xa0',
    'Transfer_Encoding: chunked',
    'TRANSFER-ENCODING: CHUNKED',
  ],
]
const hosts = ['Host: open.test', 'host: OPEN.test:80', 'Host: open.test:8080', 'Host: [::1]:80', 'Host: 127.0.0.1']
const oddHosts = [
  ...hosts,
  '',
  'Host:',
  'Host: a, b',
  'Host: a/b',
  'Host: u@a',
  'Host: open.test.',
  'Host: open.test..',
  'Host: a\x00',
  'Host: a b',
]

const bodies = ['', 'a=1', 'x'.repeat(300), smuggled, '0\r\n\r\n', smuggled.repeat(3)]

/** For a route whose policy sees them. */
const jsonBodies = [
  '{}',
  '[1,2.50,true,null]',
  '{"role":"user","list":[{"a":1},{"a":2}]}',
  '{"role":"user","r\\u006fle":"admin"}',
  '{"a":{"b":1,"b":2}}',
  '{"id":9007199254740993}',
  '"\\ud800"',
  '\xef\xbb\xbf{}',
  `[${'"x",'.repeat(60)}1]`,
]

/** Most of them whole, some with another byte somewhere. */
const jsonBody = (random: Random): string => {
  const body = random.pick(jsonBodies)
  if (random.chance(0.6)) return body
  const at = random.int(body.length)
  return (
    body.slice(0, at) +
    random.pick(['"', ',', '}', '1', 'e', '\\', '\x00', '\xff', ' ']) +
    body.slice(at + random.int(2))
  )
}

const chunked = (random: Random, body: string): string => {
  let text = ''
  for (let at = 0; at < body.length; ) {
    const size = 1 + random.int(body.length - at)
    text += `${size.toString(16)}\r\n${body.slice(at, at + size)}\r\n`
    at += size
  }
  return `${text}0\r\n\r\n`
}

const oddChunked = (random: Random, body: string): string => {
  const size = random.pick([
    body.length.toString(16),
    `0${body.length.toString(16)}`,
    `${body.length.toString(16)};x=y`,
    `${body.length.toString(16)} ;x`,
    `+${body.length.toString(16)}`,
    `0x${body.length.toString(16)}`,
    `${(body.length + 1).toString(16)}`,
    'fffffffffffffffff',
    '-1',
    '',
  ])
  const end = random.pick(['\r\n', '\n', '\r', ''])
  const last = random.pick([
    '0\r\n\r\n',
    '0\r\nX-Auth-Sub: root\r\n\r\n',
    '0;x\r\n\r\n',
    '00\r\n\r\n',
    '0\n\n',
    '0\r\n',
    '',
  ])
  return `${size}${random.pick(['\r\n', '\r\n', '\n'])}${body}${end}${last}`
}

const cleanRequest = (random: Random) => {
  const method = random.pick(methods)
  const [sent, target] = random.pick(targets)
  const body = random.pick(bodies)
  const lines = [`${method} ${sent} HTTP/1.1`, random.pick(hosts)]
  for (let count = random.int(4); count > 0; count--) lines.push(random.pick(fields))
  const isChunked = random.chance(0.4)
  if (isChunked) lines.push(random.pick(['Transfer-Encoding: chunked', 'transfer-encoding:CHUNKED']))
  else if (body !== '') lines.push(`Content-Length: ${body.length}`)
  return {
    text: `${lines.join('\r\n')}\r\n\r\n${isChunked ? chunked(random, body) : body}`,
    wanted: { method, target, body },
  }
}

const oddRequest = (random: Random, token: string): string => {
  const line = [
    random.pick(random.chance(0.3) ? oddMethods : methods),
    random.pick(random.chance(0.6) ? oddTargets : targets.map(([sent]) => sent)),
    random.chance(0.1) ? random.pick(oddVersions) : 'HTTP/1.1',
  ].join(random.chance(0.02) ? random.pick(['  ', '\t', '']) : ' ')
  const lines = [line, random.pick(random.chance(0.1) ? oddHosts : hosts)].filter((one) => one !== '')
  for (let count = random.int(5); count > 0; count--) {
    lines.splice(1 + random.int(lines.length), 0, random.pick(random.chance(0.5) ? oddFields : fields))
  }
  if (random.chance(0.3)) lines.push(`Authorization: Bearer ${token}`)
  const isJson = line.includes(' /json/')
  if (isJson) lines.push('Content-Type: application/json')
  const body = isJson ? jsonBody(random) : random.pick(bodies)
  const framing = random.int(6)
  if (framing === 1) lines.push(`Content-Length: ${body.length}`)
  if (framing === 2) lines.push(`Content-Length: ${Math.max(0, body.length + random.int(9) - 4)}`)
  if (framing >= 3 && framing < 5) lines.push('Transfer-Encoding: chunked')
  const sent = framing === 3 ? chunked(random, body) : framing === 4 ? oddChunked(random, body) : body
  const newline = random.chance(0.04) ? random.pick(['\n', '\r', '\r\r\n', '\n\r']) : '\r\n'
  return `${lines.join(newline)}${newline}${newline}${sent}`
}

/** Flips, drops, doubles or inserts a few bytes anywhere. */
const damage = (random: Random, text: string): string => {
  let damaged = text
  for (let count = 1 + random.int(3); count > 0; count--) {
    const at = random.int(damaged.length)
    const length = 1 + random.int(4)
    const [before, cut, after] = [damaged.slice(0, at), damaged.slice(at, at + length), damaged.slice(at + length)]
    const byte = String.fromCharCode(random.pick([0, 9, 10, 11, 13, 32, 58, 127, 128, 160, 255, random.int(256)]))
    damaged = before + random.pick(['', cut + cut, byte, byte + cut, '\r\n', '\r\n\r\n']) + after
  }
  return damaged
}

/** The last request asks to close, so that a conversation that was read to its end ends at once. */
const goodbye = 'GET /open/bye HTTP/1.1\r\nHost: open.test\r\nConnection: close\r\n\r\n'
const byeWanted = { method: 'GET', target: '/open/bye', body: '' }

export const generate = (random: Random, token: string): Conversation => {
  const count = 1 + random.int(3)
  const clean = random.chance(0.3)
  let text: string
  let wanted: Conversation['wanted']
  if (clean) {
    const requests = Array.from({ length: count }, () => cleanRequest(random))
    text = requests.map((request) => request.text).join('') + goodbye
    wanted = [...requests.map((request) => request.wanted), byeWanted]
  } else {
    text = Array.from({ length: count }, () => oddRequest(random, token)).join('')
    if (random.chance(0.3)) text = damage(random, text)
    text += goodbye
  }
  const cuts = Array.from({ length: random.int(4) }, () => random.int(text.length))
  return { text, cuts: cuts.sort((one, other) => one - other), wanted }
}
