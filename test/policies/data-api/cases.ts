import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import type { Asked } from '../../support/policy-server.ts'

export interface Case extends Asked {
  name: string
}

export interface Difference extends Case {
  ours: { status: number; body?: unknown }
  theirs: { status: number; body?: unknown }
  because: string
}

const post = (name: string, path: string, body: string | Buffer, headers?: Record<string, string>): Case => ({
  name,
  path,
  body,
  ...(headers && { headers }),
})
const get = (name: string, path: string): Case => ({ name, path })
const withInput = (input: unknown) => JSON.stringify({ input })

const user = withInput({ user: 'alice' })
const whole = '/v1/data/testmod/whole'
const text = 'x'.repeat(3_000)

/** Facts of OPA's tests of its server and of its documentation, as requests: both servers answer them the same. */
export const sameCases: readonly Case[] = [
  post('an input that a rule holds for', '/v1/data/testmod/g', withInput({ req1: { a: [1] }, req2: { b: [0, 1] } })),
  post('an input that it does not hold for', '/v1/data/testmod/g', withInput({ req1: { a: [2] }, req2: { b: [1] } })),
  get('an input in the query', `/v1/data/testmod/gt1?input=${encodeURIComponent('{"req1":2}')}`),
  get('an input in the query that is too small', `/v1/data/testmod/gt1?input=${encodeURIComponent('{"req1":1}')}`),
  get('no input', '/v1/data/testmod/gt1'),
  get('an input that is null', '/v1/data/testmod/whole?input=null'),
  get('an input that is no JSON', '/v1/data/testmod/gt1?input=%7B'),
  get('an empty input', '/v1/data/testmod/gt1?input='),
  get('two inputs', '/v1/data/testmod/whole?input=1&input=2'),
  get('a document that needs none', '/v1/data/testmod/arr'),
  get('undefined', '/v1/data/testmod/undef'),
  get('a default', '/v1/data/testmod/p'),
  post('a default that is overruled', '/v1/data/testmod/p', withInput({ x: 1 })),
  post('partial rules', '/v1/data/testmod/p', withInput({ x: 1, z: 3 })),
  post('partial rules, two of them', '/v1/data/testmod/p', withInput({ x: 1, y: 2, z: 3 })),
  post('undefined for an input', '/v1/data/testmod/undef', user),
  post('a missing input', '/v1/data/testmod/arr', '{}'),
  post('an empty body', '/v1/data/testmod/arr', ''),
  post('a body of white space', '/v1/data/testmod/arr', ' \n'),
  post('null for a body', '/v1/data/testmod/arr', 'null'),
  post('null for an input', whole, withInput(null)),
  post('false for an input', whole, withInput(false)),
  post('a list for a body', whole, '[1]'),
  post('a text for a body', whole, '"a"'),
  post('half a body', whole, '{"input": {'),
  post('no JSON', whole, 'input=1'),
  post('a byte order mark', whole, `\ufeff${withInput(1)}`),
  post('members beside the input', whole, '{"input": 1, "path": "x"}'),
  post('two inputs in a body', whole, '{"input": 1, "input": 2}'),
  post('a member twice', whole, '{"input": {"a": 1, "a": 2}}'),
  post('names of prototypes', whole, '{"input": {"__proto__": {"x": 1}, "constructor": 2, "toString": null}}'),
  post('bytes that are no UTF-8', whole, Buffer.from('{"input": "a\xffb"}', 'latin1')),
  post('characters beyond ASCII', whole, withInput({ 'ключ é': '<&>\u2028 😀' })),
  post('numbers', whole, withInput([0.1, 1e12, -5, 9_007_199_254_740_991, 1.5e-7])),
  post('an input of a thousand levels', whole, `{"input":${'['.repeat(1_000)}${']'.repeat(1_000)}}`),
  post('an input of twenty thousand levels', whole, `{"input":${'['.repeat(20_000)}${']'.repeat(20_000)}}`),
  post('another content type', whole, withInput(1), { 'content-type': 'text/plain' }),
  post('an expectation', whole, withInput(1), { expect: '100-continue' }),
  post('gzip', whole, gzipSync(withInput({ a: 1 })), { 'content-encoding': 'gzip' }),
  post('gzip of nothing', '/v1/data/testmod/arr', gzipSync(''), { 'content-encoding': 'gzip' }),
  post('gzip with a false size', whole, falseSize(gzipSync(withInput(1))), { 'content-encoding': 'gzip' }),
  post('a long answer for gzip', whole, withInput(text), { 'accept-encoding': 'gzip, deflate, br' }),
  post('a short answer for gzip', whole, withInput(1), { 'accept-encoding': 'gzip' }),
  post('a long answer for whoever takes no gzip', whole, withInput(text), { 'accept-encoding': 'br' }),
  { ...post('chunks', whole, withInput(1)), headers: { 'transfer-encoding': 'chunked' } },
  post('a member of a result', '/v1/data/testmod/decision/allow', user),
  post('a member of a member, with a slash in its name', '/v1/data/testmod/decision/n/x%2Fy', user),
  post('a member of what is undefined', '/v1/data/testmod/decision/allow', withInput({})),
  post('an encoded path', '/v1/data/%74estmod/decision', user),
  post('a parameter that is no UTF-8', '/v1/data/testmod/whole?pretty=%ff', withInput(1)),
  post('pretty', '/v1/data/testmod/decision?pretty', user),
  post('pretty=true', '/v1/data/testmod/decision?pretty=true', user),
  post('pretty=false', '/v1/data/testmod/decision?pretty=false', user),
  post('metrics=false', '/v1/data/testmod/decision?metrics=false', user),
  post('parameters nobody knows', '/v1/data/testmod/decision?x=1&strict-builtin-errors=false', user),
  post('an explanation of a kind nobody knows', '/v1/data/testmod/decision?explain=bogus', user),
  post('no explanation', '/v1/data/testmod/decision?explain=off', user),
  post('rules that contradict each other', '/v1/data/testmod/conflict', withInput({ a: true, b: true })),
  post('a function that fails', '/v1/data/testmod/failing', withInput({ text: 'x' })),
  post('v0', '/v0/data/testmod/decision', '{"user": "alice"}'),
  post('v0 pretty', '/v0/data/testmod/decision?pretty', '{"user": "alice"}'),
  post('v0 of a member', '/v0/data/testmod/decision/allow', '{"user": "alice"}'),
  post('v0 of a document that needs no input', '/v0/data/testmod/arr', ''),
  post('v0 null', '/v0/data/testmod/whole', 'null'),
  post('v0 with nothing', '/v0/data/testmod/whole', ''),
  post('v0 undefined', '/v0/data/testmod/undef', '{}'),
  post('v0 with half a body', '/v0/data/testmod/whole', '{'),
  post('v0 with rules that contradict each other', '/v0/data/testmod/conflict', '{"a": true, "b": true}'),
  post('the default decision', '/', '{"user": "alice"}'),
  post('the default decision pretty', '/?pretty', '{"user": "alice"}'),
  post('the default decision of nothing', '/', 'null'),
  post('the default decision undefined', '/', '{"hide": true}'),
  post('the default decision with half a body', '/', '{'),
  post('a target with a host', `http://opa.example${whole}?pretty`, withInput(1)),
  post('an empty segment', '/v1/data//testmod/whole?metrics', withInput(1)),
  post('two slashes first', '//v1/data/testmod/whole', withInput(1)),
  post('a dot segment', '/v1/data/./testmod/whole', withInput(1)),
  post('a segment up', '/v1/data/x/../testmod/whole', withInput(1)),
  post('many segments up', '/v1/data/../../../../etc/passwd', withInput(1)),
  get('health', '/health'),
  get('health of bundles', '/health?bundles'),
  get('health of bundles, the older name', '/health?bundle=true'),
  get('health of plugins', '/health?plugins'),
  get('a health rule that is true', '/health/live'),
  get('a health rule about plugins', '/health/ready'),
  get('a health rule that is not true', '/health/odd'),
  get('a health rule that is undefined', '/health/never'),
  get('a health rule that is not there', '/health/none'),
  { name: 'HEAD of a document', path: whole, method: 'HEAD' },
  { name: 'OPTIONS of a document', path: whole, method: 'OPTIONS' },
  { name: 'a method that nobody knows', path: whole, method: 'PROPFIND' },
  { name: 'GET of v0', path: '/v0/data/testmod/whole' },
  get('another version', '/v2/data/testmod/whole'),
  get('what begins like an endpoint', '/healthz'),
  post('batches, which OPA has not', '/v1/batch/data/testmod/whole', '{"inputs": {}}'),
  get('a policy that is not there', '/v1/policies/none'),
]

function falseSize(packed: Buffer): Buffer {
  packed.writeUInt32LE(134_217_728, packed.length - 4)
  return packed
}

const noEntrypoint = 'a path that is no entrypoint is an error: OPA answers what is there, {} included'
const readOnly = 'policies and documents are files'
const strict = 'read strictly: what OPA passes over could be meant otherwise by whoever sent it'
const error = (code: string) => ({ code, message: expect.any(String) })

/** Where ours answers otherwise, and means to. */
export const differences: readonly Difference[] = [
  ...(
    [
      ['a rule that is no entrypoint', '/v1/data/testmod/not_asked', { result: 1 }],
      ['a package', '/v1/data/a/b', { result: { decision: { allow: true } } }],
      ['a path that is not there', '/v1/data/nowhere/allow', {}],
      ['a misspelt entrypoint', '/v1/data/testmod/decison', {}],
      ['the name of an entrypoint in one segment', '/v1/data/testmod%2Fwhole', {}],
      ['an encoded segment up', '/v1/data/x/%2e%2e/testmod/whole', {}],
      ['another case', '/v1/data/Testmod/whole', {}],
    ] as const
  ).map(
    ([name, path, body]): Difference => ({
      ...post(name, path, withInput({ a: 1 })),
      ours: { status: 400, body: error('invalid_parameter') },
      theirs: { status: 200, body },
      because: noEntrypoint,
    }),
  ),
  {
    ...post('v0 of a path that is not there', '/v0/data/nowhere', '{}'),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 404, body: error('undefined_document') },
    because: noEntrypoint,
  },
  {
    ...post('an element of a list', '/v1/data/testmod/decision/list/1', user),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 200, body: { result: 'b' } },
    because: 'results are JSON, in which sets are lists: the first element of a set has no number in Rego',
  },
  {
    ...post('an element of a set', '/v1/data/testmod/roles/admin', user),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 200, body: { result: 'admin' } },
    because: 'as above',
  },
  {
    ...post('a member that there cannot be', '/v1/data/testmod/decision/allow/more', user),
    ours: { status: 200, body: {} },
    theirs: { status: 500, body: error('internal_error') },
    because: 'undefined, as OPA answers for members that its type checker knows nothing of',
  },
  {
    ...post('what follows the body', whole, `${withInput(1)} {"input": 2}`),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 200, body: { result: 1 } },
    because: strict,
  },
  {
    ...post('Input', whole, '{"Input": 1}'),
    ours: { status: 200, body: { warning: expect.objectContaining({ code: 'api_usage_warning' }) } },
    theirs: { status: 200, body: { result: 1 } },
    because: strict,
  },
  {
    ...post('an encoding that nobody has', whole, withInput(1), { 'content-encoding': 'br' }),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 200, body: { result: 1 } },
    because: strict,
  },
  {
    ...post('YAML', whole, 'input: 1', { 'content-type': 'application/x-yaml' }),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 200, body: { result: 1 } },
    because: 'bodies are JSON: of YAML there are several, which read the same text otherwise',
  },
  {
    ...post('a whole number beyond 2^53', whole, '{"input": 12345678901234567890}'),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 200 },
    because: 'it would become another number, and another one equal to it',
  },
  {
    ...post('a number beyond 1.8e308', whole, '{"input": 1e400}'),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 200 },
    because: 'as above',
  },
  {
    ...post('half of a character', whole, '{"input": "\\ud800"}'),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 200, body: { result: '\ufffd' } },
    because: 'it would become another text, and another one equal to it',
  },
  {
    ...post('strict built-in errors', '/v1/data/testmod/failing?strict-builtin-errors', withInput({ text: 'x' })),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 500, body: expect.objectContaining({ code: 'internal_error' }) },
    because: 'compiled rules have no such mode',
  },
  {
    ...post('a slash at the end', '/v1/data/testmod/whole/', withInput(1)),
    ours: { status: 307 },
    theirs: { status: 301 },
    because: 'after 301 clients ask by GET, without their input',
  },
  {
    ...post('a path that is no UTF-8', '/v1/data/testmod/whole%ff', withInput(1)),
    ours: { status: 400, body: error('invalid_parameter') },
    theirs: { status: 500, body: error('internal_error') },
    because: "it is the caller's fault",
  },
  {
    ...post('more work than is allowed', '/v1/data/testmod/work', withInput({ n: 1_000 })),
    ours: { status: 500, body: expect.objectContaining({ code: 'internal_error' }) },
    theirs: { status: 200, body: { result: 1_000_000 } },
    because: 'evaluations have units of work (--units)',
  },
  ...['PUT', 'PATCH', 'DELETE'].map(
    (method): Difference => ({
      ...post(`${method} of a document`, '/v1/data/new', method === 'PATCH' ? '[]' : '{}'),
      method,
      ours: { status: 405, body: error('invalid_parameter') },
      theirs: { status: 204 },
      because: readOnly,
    }),
  ),
  {
    ...post('a new policy', '/v1/policies/new', 'package new'),
    method: 'PUT',
    ours: { status: 405, body: error('invalid_parameter') },
    theirs: { status: 200 },
    because: readOnly,
  },
  {
    ...get('the policies', '/v1/policies'),
    ours: { status: 200, body: { result: [] } },
    theirs: {
      status: 200,
      body: { result: expect.arrayContaining([expect.objectContaining({ id: expect.any(String) })]) },
    },
    because: 'rules are not shown',
  },
  {
    ...get('a query', '/v1/query?q=data.testmod.arr=x'),
    ours: { status: 404, body: error('resource_not_found') },
    theirs: { status: 200 },
    because: 'compiled rules answer for their entrypoints only',
  },
  {
    ...post('partial evaluation', '/v1/compile', '{"query": "data.testmod.g == true"}'),
    ours: { status: 404, body: error('resource_not_found') },
    theirs: { status: 200 },
    because: 'as above',
  },
  {
    ...get('the configuration', '/v1/config'),
    ours: { status: 404, body: error('resource_not_found') },
    theirs: { status: 200 },
    because: 'there is none but the command line',
  },
  {
    name: 'HEAD of health',
    path: '/health',
    method: 'HEAD',
    ours: { status: 200 },
    theirs: { status: 405 },
    because: 'what answers GET answers HEAD, and probes use it (RFC 9110 §9.3.2)',
  },
  {
    ...get('the front page', '/'),
    ours: { status: 405, body: error('invalid_parameter') },
    theirs: { status: 200 },
    because: 'no page',
  },
]
