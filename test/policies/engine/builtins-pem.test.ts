import { createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  leafCertificate,
  leafKey,
  leafKeyWithParameters,
  leafRequest,
  rootCertificate,
  rootKey,
  rootPublicKey,
} from './certificates.ts'
import { ours, theirs } from './opa-answers.ts'

/**
 * What is no clean PEM, base64 or DER: a policy must not trust in the gateway what OPA refused when the policy was
 * tested.
 */
const agree = async (expressions: readonly string[]): Promise<Map<string, string>> => {
  const [engine, opa] = [await ours(expressions), await theirs(expressions)]
  expect(engine).toEqual(opa)
  return new Map(engine.map((line, index) => [expressions[index]!, line.slice(expressions[index]!.length + 3)]))
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const inLines = (text: string, end: string): string => text.replaceAll(/.{64}/g, `$&${end}`)
const derOf = (pem: string): Buffer => Buffer.from(pem.replaceAll(/-----.*?-----|\n/g, ''), 'base64')
const relabelled = (pem: string, label: string): string => pem.replaceAll(/(BEGIN|END) [A-Z ]+/g, `$1 ${label}`)
const torn = (pem: string): string => pem.replace('-----\nMI', '-----\nM*')

/** Spellings of a PEM text, some of them right. */
const spellings = (pem: string): string[] => [
  pem,
  pem.trimEnd(),
  pem.replaceAll('\n', '\r\n'),
  pem.replaceAll('\n', ''),
  pem.replace('-----\n', '-----\nProc-Type: 4\n\n'),
  ...['\n', ' ', 'text\n', 'text'].map((before) => before + pem),
  ...['\n', ' ', '\t', 'text', 'text\n', pem, `text\n${pem}`, rootPublicKey].map((behind) => pem + behind),
  pem.trimEnd().concat(' \t\n'),
  rootPublicKey + pem,
  torn(pem),
  torn(pem) + pem,
  `-----BEGIN X-----\n${pem}`,
  pem.replace('END ', 'END X'),
  pem.slice(0, 80),
  relabelled(pem, 'THING'),
  '-----BEGIN',
  '-----BEGIN X-----',
  '-----BEGIN X-----\nAAAA\n-----END X-----\n',
]

/** Spellings of base64. */
const encoded = (pem: string): string[] => {
  const [text, der] = [base64(pem), derOf(pem)]
  return [
    ...[text, inLines(text, '\n'), inLines(text, '\r\n'), inLines(text, ' '), `${text} `, ` ${text}`, `\n${text}\n`],
    ...[`\n${pem}`, `text\n${pem}`].map(base64),
    ...[der, Buffer.concat([der, Buffer.from([0])]), Buffer.concat([der, der])].map((bytes) =>
      bytes.toString('base64'),
    ),
    der.toString('base64url'),
    der.toString('base64').replace(/=+$/, ''),
    ...[
      '',
      ' ',
      'x',
      'xx',
      'xxx',
      'xxxx',
      '====',
      'x===',
      'eA==',
      'eA=',
      'eB==',
      '***',
      'é',
      '_-_-',
      base64('nothing'),
    ],
  ]
}

const call = (name: string, ...operands: string[]): string =>
  `${name}(${operands.map((operand) => JSON.stringify(operand)).join(', ')})`

describe('as OPA reads them', () => {
  test('certificates', async () => {
    const texts = [...spellings(rootCertificate), ...encoded(rootCertificate)]
    await agree(texts.map((text) => `count(${call('crypto.x509.parse_certificates', text)})`))
    const verified = texts.map((text) => `${call('crypto.x509.parse_and_verify_certificates', text)}[0]`)
    const chain = `${call('crypto.x509.parse_and_verify_certificates', rootCertificate + leafCertificate)}[0]`
    expect((await agree([...verified, chain])).get(chain)).toBe('true')
  })

  test('certificate requests', async () => {
    const texts = [...spellings(leafRequest), ...encoded(leafRequest)]
    await agree(texts.map((text) => `${call('crypto.x509.parse_certificate_request', text)}.Subject.CommonName`))
  })

  test.each([
    ['RSA, PKCS #8', rootKey],
    ['RSA, PKCS #1', createPrivateKey(rootKey).export({ type: 'pkcs1', format: 'pem' }) as string],
    ['EC', leafKey],
    ['EC with parameters', leafKeyWithParameters],
  ])('private keys: %s', async (_, key) => {
    const texts = [...spellings(key), ...encoded(key)]
    await agree(texts.map((text) => `count(${call('crypto.parse_private_keys', text)})`))
    const member = (text: string) => `object.get(${call('crypto.x509.parse_rsa_private_key', text)}, "kty", "none")`
    const isNull = (text: string) => `${call('crypto.x509.parse_rsa_private_key', text)} == null`
    await agree(texts.flatMap((text) => [member(text), isNull(text)]))
  })

  test('pairs of a certificate and its key', async () => {
    const pair = (certificate: string, key: string) =>
      `object.keys(${call('crypto.x509.parse_keypair', certificate, key)})`
    await agree([...spellings(rootCertificate), ...encoded(rootCertificate)].map((text) => pair(text, rootKey)))
    await agree([...spellings(rootKey), ...encoded(rootKey)].map((text) => pair(rootCertificate, text)))
  })

  test('keys for tokens', async () => {
    const keys = [rootPublicKey, rootCertificate].flatMap(spellings)
    const pkcs1 = createPublicKey(rootPublicKey).export({ type: 'pkcs1', format: 'pem' }) as string
    const others = [rootKey, pkcs1, leafKey, leafKeyWithParameters, relabelled(rootCertificate, 'X509 CERTIFICATE')]
    const wrongLabels = [relabelled(rootCertificate, 'PUBLIC KEY'), relabelled(rootPublicKey, 'CERTIFICATE')]
    const [header, payload] = [{ alg: 'RS256' }, { sub: 'u1' }].map((part) =>
      Buffer.from(JSON.stringify(part)).toString('base64url'),
    )
    const signature = sign('sha256', Buffer.from(`${header}.${payload}`), rootKey).toString('base64url')
    const token = `${header}.${payload}.${signature}`
    const asked = [...keys, ...others, ...wrongLabels]
    const answers = await agree([
      ...asked.map((key) => call('io.jwt.verify_rs256', token, key)),
      ...asked.map((key) => `io.jwt.decode_verify(${JSON.stringify(token)}, ${JSON.stringify({ cert: key })})[0]`),
    ])
    const answerTo = (key: string) => answers.get(call('io.jwt.verify_rs256', token, key))
    expect([rootPublicKey, rootCertificate].map(answerTo)).toEqual(['true', 'true'])
    expect(answerTo(rootCertificate + rootCertificate)).toBe('undefined')
    expect(answerTo(leafCertificate + rootCertificate)).toBeUndefined()
  })
})

test('a SPIFFE id is in URIStrings of certificates that were verified, and where OPA leaves it out it is left out', async () => {
  const chain = rootCertificate + leafCertificate
  const uris = (expression: string) => `object.get(${expression}, "URIStrings", "none")`
  const parsed = uris(`${call('crypto.x509.parse_certificates', leafCertificate)}[0]`)
  const verified = uris(`${call('crypto.x509.parse_and_verify_certificates', chain)}[1][0]`)
  const root = uris(`${call('crypto.x509.parse_and_verify_certificates', chain)}[1][1]`)
  const withOptions = uris(
    `crypto.x509.parse_and_verify_certificates_with_options(${JSON.stringify(chain)}, {"KeyUsages": ["KeyUsageClientAuth"]})[1][0]`,
  )
  const pair = uris(`${call('crypto.x509.parse_keypair', leafCertificate, leafKey)}.Leaf`)
  const answers = await agree([parsed, verified, root, withOptions, pair])
  expect([...answers.values()]).toEqual([
    '["spiffe://example.test/billing"]',
    '["spiffe://example.test/billing"]',
    'null',
    '"none"',
    '"none"',
  ])
})

test('options of a verification: unreadable certificates are refused before them, and wrong ones make it undefined', async () => {
  const any = (json: string) => `json.unmarshal(${JSON.stringify(json)})`
  const options = [
    '{}',
    ...['0', '-1', '1.5', '99999999999999999999', any('null')].map((time) => `{"CurrentTime": ${time}}`),
    ...['""', '"leaf"', String.raw`"\"leaf\""`, any('5')].map((name) => `{"DNSName": ${name}}`),
    ...['[]', '["KeyUsageClientAuth"]', '{"KeyUsageClientAuth"}', '["KeyUsageCodeSigning"]', '["KeyUsageAny"]'].map(
      (usages) => `{"KeyUsages": ${usages}}`,
    ),
    ...['["nothing"]', String.raw`["\"KeyUsageClientAuth\""]`, `[${any('5')}]`, any('null')].map(
      (usages) => `{"KeyUsages": ${usages}}`,
    ),
    ...['5', '1.5', any('null'), '"x"'].map((most) => `{"MaxConstraintComparisons": ${most}}`),
    ...['{"x": 1}', `{${any('null')}: 1}`, `{${any('5')}: 1}`],
  ]
  const texts = [rootCertificate + leafCertificate, 'unreadable']
  await agree(
    texts.flatMap((text) =>
      options.map(
        (one) => `crypto.x509.parse_and_verify_certificates_with_options(${JSON.stringify(text)}, ${one})[0]`,
      ),
    ),
  )
})
