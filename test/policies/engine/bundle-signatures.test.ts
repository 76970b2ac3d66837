import { execFileSync, spawnSync } from 'node:child_process'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { publishBundle, readBundle, unpack } from '../../../policies/engine/bundle/bundle.ts'
import type { SignatureAlgorithm, Verification } from '../../../policies/engine/bundle/signatures.ts'
import { writeTar } from '../../../policies/engine/bundle/tar.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { ruleFolder } from '../rule-folder.ts'

const opa = await findOpa()
const rule = 'package test\n\n# METADATA\n# entrypoint: true\ndecision := data.x\n'
/** Numbers in every spelling, members out of order, what Go and JavaScript escape differently. */
const data =
  '{"x": {"n": 1.0, "e": 1E3, "big": 12345678901234567890123, "10": 1, "9": [true, null], "ü": "<&>\u2028\\b\\u0001"}}'
const sources = new Map([
  ['a.rego', Buffer.from(rule)],
  ['data.json', Buffer.from(data)],
])
const bundle = await compilePolicies({ sources, opa })

const pairs = {
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
}
const keysOf = (
  algorithm: SignatureAlgorithm,
  id = 'k1',
  key: KeyObject = pairs[algorithm].publicKey,
): Verification => ({
  keys: new Map([[id, { algorithm, key }]]),
})
const signed = (algorithm: SignatureAlgorithm, more: { serial?: number; scope?: string; bytes?: Uint8Array } = {}) =>
  publishBundle(more.bytes ?? bundle, {
    serial: more.serial,
    key: { keyId: 'k1', algorithm, key: pairs[algorithm].privateKey, scope: more.scope },
  })
const repack = (bytes: Uint8Array, change: (files: Map<string, Uint8Array>) => void) => {
  const files = new Map<string, Uint8Array>(unpack(bytes))
  change(files)
  return gzipSync(writeTar(files))
}

describe.each(['ES256', 'RS256'] as const)('%s', (algorithm) => {
  test('what is signed here is accepted here, keeps its stamp, and carries its serial number', () => {
    const read = readBundle(signed(algorithm, { serial: 7 }), keysOf(algorithm))
    expect(read).toMatchObject({ serial: 7, data: JSON.parse(data), built: { reads: expect.any(Object) } })
  })

  test('what OPA signs is accepted, documents in any spelling', async () => {
    const folder = await ruleFolder({
      'rules/a.rego': rule,
      'rules/data.json': data,
      'key.pem': pairs[algorithm].privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    })
    const output = join(folder, 'b.tar.gz')
    const args = [
      'build',
      '-t',
      'wasm',
      '-b',
      '.',
      '-o',
      output,
      '--signing-key',
      '../key.pem',
      '--signing-alg',
      algorithm,
    ]
    execFileSync(opa, args, { cwd: join(folder, 'rules') })
    const bytes = await readFile(output)
    expect(readBundle(bytes, keysOf(algorithm, 'default')).data).toEqual(JSON.parse(data))
    // The same documents written in another way have the same digest.
    const respelt = repack(bytes, (files) => files.set('data.json', Buffer.from(data)))
    expect(readBundle(respelt, keysOf(algorithm, 'default')).data).toEqual(JSON.parse(data))
  })

  test('OPA accepts what is signed here', async () => {
    const folder = await ruleFolder({
      'b.tar.gz': signed(algorithm, { serial: 1, scope: 'write' }),
      'key.pem': pairs[algorithm].publicKey.export({ type: 'spki', format: 'pem' }) as string,
    })
    const verify = (scope: string) => {
      const keys = ['--verification-key', 'key.pem', '--verification-key-id', 'k1', '--signing-alg', algorithm]
      const args = ['build', '-b', 'b.tar.gz', ...keys, '--scope', scope, '-o', 'checked.tar.gz']
      const { stdout, stderr } = spawnSync(opa, args, { cwd: folder })
      return `${stdout}${stderr}`
    }
    expect(verify('write')).toBe('')
    expect(verify('read')).toContain('scope mismatch')
  })
})

describe('refused is', () => {
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey
  const change = (name: string, content: string) =>
    repack(signed('ES256'), (files) => files.set(name, Buffer.from(content)))
  test.each<[string, Uint8Array, Verification, RegExp]>([
    ['a bundle that is not signed', bundle, keysOf('ES256'), /is not signed/],
    [
      'a signature by another key',
      signed('ES256'),
      keysOf('ES256', 'k1', other),
      /signature of the bundle is not valid/,
    ],
    [
      'a signature by a key of another name',
      signed('ES256'),
      keysOf('ES256', 'k2'),
      /the key "k1", which is not configured/,
    ],
    [
      'a signature with another algorithm',
      signed('ES256'),
      keysOf('RS256'),
      /signed with ES256; the key k1 is for RS256/,
    ],
    [
      'a signature for a scope that was not asked for',
      signed('ES256', { scope: 'a' }),
      keysOf('ES256'),
      /another scope/,
    ],
    ['a signature without the scope', signed('ES256'), { ...keysOf('ES256'), scope: 'a' }, /another scope/],
    [
      'a changed document',
      change('data.json', '{"x": 1}'),
      keysOf('ES256'),
      /data\.json in the bundle is not the file/,
    ],
    [
      'a changed manifest',
      change('.manifest', '{"wasm": []}'),
      keysOf('ES256'),
      /\.manifest in the bundle is not the file/,
    ],
    ['a changed module', change('policy.wasm', 'x'), keysOf('ES256'), /policy\.wasm in the bundle is not the file/],
    ['a file more', change('b/data.json', '{}'), keysOf('ES256'), /does not cover b\/data\.json/],
    [
      'a file less',
      repack(signed('ES256'), (files) => files.delete('data.json')),
      keysOf('ES256'),
      /data\.json was signed but is missing/,
    ],
    [
      'a signature that cannot be read',
      change('.signatures.json', '{"signatures": ["a.b"]}'),
      keysOf('ES256'),
      /\.signatures\.json in the bundle cannot be read/,
    ],
    [
      'two signatures',
      change('.signatures.json', '{"signatures": ["a.b.c", "d.e.f"]}'),
      keysOf('ES256'),
      /cannot be read/,
    ],
  ])('%s', (_, bytes, verification, message) => {
    expect(() => readBundle(bytes, verification)).toThrow(message)
  })

  test('a signature without a key, whatever its header says', () => {
    const bytes = repack(signed('ES256'), (files) => {
      const { signatures } = JSON.parse(Buffer.from(files.get('.signatures.json')!).toString())
      const header = Buffer.from('{"alg":"none"}').toString('base64url')
      const token = `${header}.${signatures[0].split('.')[1]}.`
      files.set('.signatures.json', Buffer.from(JSON.stringify({ signatures: [token] })))
    })
    expect(() => readBundle(bytes, keysOf('ES256'))).toThrow(/signed with none/)
  })
})

test('signing again replaces the signature', () => {
  const twice = signed('RS256', { bytes: signed('ES256') })
  expect(readBundle(twice, keysOf('RS256')).data).toEqual(JSON.parse(data))
})
