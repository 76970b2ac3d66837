import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { call, type HostileCall, json, manyTexts, most, repeated } from './call.ts'
import { type Certified, certify, der, type NamedExtension } from './make-certificates.ts'

const half = most / 2

const times = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index))

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const ecKey = (namedCurve: string): KeyObject => generateKeyPairSync('ec', { namedCurve }).privateKey

/** A modulus of so many bits whose factors nobody knows: enough to verify with. `e`: of so many bits, all ones. */
const rsaJwk = (bits: number, e: number): object => ({
  kty: 'RSA',
  n: Buffer.alloc(bits / 8, 0xe7).toString('base64url'),
  e: Buffer.alloc(Math.ceil(e / 8), 0xff).toString('base64url'),
})

/** With a signature of the right length that is wrong for nearly all keys. */
const token = (alg: string, bytes: number): string =>
  `${encoded({ alg })}.${encoded({ sub: 'u' })}.${Buffer.alloc(bytes, 0x41).toString('base64url')}`

const jwks = (count: number, key: object): string => JSON.stringify({ keys: times(count, () => key) })

const ecJwk = (curve: string): object => createPublicKey(ecKey(curve)).export({ format: 'jwk' })

const ecSignature = (curve: string): number => ({ 'P-256': 64, 'P-384': 96, 'P-521': 132 })[curve] ?? 0

const tokenCalls: HostileCall[] = [
  ...(['P-256', 'P-384', 'P-521'] as const).map((curve, index) =>
    call(`io.jwt.verify_es${['256', '384', '512'][index]}`, 'many keys', () => {
      const key = ecJwk(curve)
      return [
        token(`ES${['256', '384', '512'][index]}`, ecSignature(curve)),
        jwks(Math.floor(60_000 / JSON.stringify(key).length), key),
      ]
    }),
  ),
  call('io.jwt.verify_eddsa', 'many keys', () => {
    const key = createPublicKey(generateKeyPairSync('ed25519').privateKey).export({ format: 'jwk' })
    return [token('EdDSA', 64), jwks(600, key)]
  }),
  ...['rs256', 'rs384', 'rs512', 'ps256', 'ps384', 'ps512'].flatMap((name) => [
    call(`io.jwt.verify_${name}`, 'large keys', () => [token(name.toUpperCase(), 2_048), jwks(22, rsaJwk(16_384, 64))]),
    call(`io.jwt.verify_${name}`, 'large exponents', () => [
      token(name.toUpperCase(), 384),
      jwks(58, rsaJwk(3_072, 3_072)),
    ]),
  ]),
  ...['hs256', 'hs384', 'hs512'].map((name) =>
    call(`io.jwt.verify_${name}`, 'a long token', () => [
      `${encoded({ alg: 'HS256' })}.${repeated('a', half)}.AAAA`,
      repeated('k', half),
    ]),
  ),
  call('io.jwt.decode', 'a long payload', () => [
    `${encoded({ alg: 'none' })}.${encoded({ a: times(most / 4, () => 1) })}.`,
  ]),
  call('io.jwt.decode', 'tokens in tokens', () => [
    times(8, () => 0).reduce(
      (inner) => `${encoded({ alg: 'none', cty: 'JWT' })}.${Buffer.from(inner).toString('base64url')}.`,
      `${encoded({})}.${encoded({ a: repeated('a', 4_000) })}.`,
    ),
  ]),
  call('io.jwt.decode', 'large numbers', () => [
    `${encoded({ alg: 'none' })}.${Buffer.from(`{"a":${repeated('9', half)}}`).toString('base64url')}.`,
  ]),
  call('io.jwt.decode_verify', 'large exponents', () => [
    token('RS256', 384),
    json({ cert: jwks(58, rsaJwk(3_072, 3_072)), time: 1 }),
  ]),
  call('io.jwt.decode_verify', 'many secrets', () => {
    const key = { kty: 'oct', k: encoded('x'.repeat(60)) }
    return [`${encoded({ alg: 'HS256' })}.${repeated('a', half)}.AAAA`, json({ cert: jwks(300, key), time: 1 })]
  }),
  call('io.jwt.decode_verify', 'many claims of audience', () => {
    const secret = 's'
    const signed = `${encoded({ alg: 'HS256' })}.${encoded({ aud: manyTexts((index) => String(index)), exp: 1e300 })}`
    const signature = createHmac('sha256', secret).update(signed).digest('base64url')
    return [`${signed}.${signature}`, json({ secret, aud: 'x' })]
  }),
]

// --- certificates

const pem = (type: string, bytes: Buffer): string =>
  `-----BEGIN ${type}-----\n${bytes.toString('base64')}\n-----END ${type}-----\n`

const chainOf = (certificates: readonly Buffer[]): string => certificates.map((one) => pem('CERTIFICATE', one)).join('')

/** A leaf, a root of another key, and between them certificates that all vouch for each other. */
const everybodyVouches = (count: number): string => {
  const key = ecKey('P-256')
  const other = ecKey('P-256')
  const ca = { subject: 'a', issuer: 'a', key, by: key, ca: true } satisfies Certified
  return chainOf([
    certify({ ...ca, subject: 'root', issuer: 'root', key: other, by: other }),
    ...times(count, () => certify(ca)),
    certify({ ...ca, subject: 'leaf', ca: false }),
  ])
}

/** Names of the leaf and constraints of its issuer. */
const constrained = (names: number): string => {
  const [rootKey, leafKey] = [ecKey('P-256'), ecKey('P-256')]
  const dns = (index: number): Buffer => der.tagged(0x82, Buffer.from(`${index.toString(36)}.a`))
  const permitted: NamedExtension = {
    id: '2.5.29.30',
    value: der.sequence(
      der.tagged(
        0xa1,
        Buffer.concat(times(names, (index) => der.sequence(der.tagged(0x82, Buffer.from(`x${index.toString(36)}.b`))))),
      ),
    ),
  }
  const alternative: NamedExtension = { id: '2.5.29.17', value: der.sequence(...times(names, dns)) }
  return chainOf([
    certify({ subject: 'r', issuer: 'r', key: rootKey, by: rootKey, ca: true, extensions: [permitted] }),
    certify({ subject: 'l', issuer: 'r', key: leafKey, by: rootKey, ca: false, extensions: [alternative] }),
  ])
}

const base64Of = (certificates: readonly Buffer[]): string => Buffer.concat(certificates).toString('base64')

const smallCertificates = (): Buffer[] => {
  const key = ecKey('P-256')
  const one = certify({ subject: 'a', issuer: 'a', key, by: key, ca: true })
  return times(Math.floor(most / 1.37 / one.length), () => one)
}

const withNames = (value: Buffer): Buffer => {
  const key = ecKey('P-256')
  return certify({ subject: 'a', issuer: 'a', key, by: key, ca: true, extensions: [{ id: '2.5.29.17', value }] })
}

const largeExponent = (): Buffer => {
  const key = createPublicKey({ key: rsaJwk(3_072, 3_072) as never, format: 'jwk' })
  const by = ecKey('P-256')
  return certify({ subject: 'a', issuer: 'a', key, by, ca: true })
}

const manyCertificates: readonly [string, () => string][] = [
  ['all vouch for each other', () => everybodyVouches(20)],
  ['many names, many constraints', () => constrained(1_200)],
  ['many certificates', () => base64Of(smallCertificates())],
  [
    'many addresses',
    () => base64Of([withNames(der.sequence(...times(2_500, () => der.tagged(0x87, Buffer.alloc(16, 7)))))]),
  ],
  ['many URIs', () => base64Of([withNames(der.sequence(...times(4_000, () => der.tagged(0x86, Buffer.from('a:b')))))])],
  ['many elements', () => Buffer.from(times(most / 2.8, () => '0500').join(''), 'hex').toString('base64')],
  ['large exponents', () => base64Of(times(40, largeExponent))],
  ['beginnings of PEM', () => repeated('-----BEGIN CERTIFICATE-----\n')],
  ['empty PEM', () => repeated('-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n')],
]

const privateKeyDer = (curve: string): Buffer => {
  const { d } = ecKey(curve).export({ format: 'jwk' })
  const oid = { 'P-256': '06082a8648ce3d030107', 'P-384': '06052b81040022', 'P-521': '06052b81040023' }[curve]!
  return der.sequence(
    der.integer(1),
    der.tagged(4, Buffer.from(d!, 'base64url')),
    der.tagged(0xa0, Buffer.from(oid, 'hex')),
  )
}

/** Without the public point, which has to be computed. */
const manyPrivateKeys = (curve: string): string => {
  const text = pem('EC PRIVATE KEY', privateKeyDer(curve))
  return text.repeat(Math.floor(most / text.length))
}

const keyPair = (): { certificate: string; key: string } => {
  const key = ecKey('P-521')
  return {
    certificate: chainOf([certify({ subject: 'a', issuer: 'a', key, by: key, ca: true })]),
    key: pem('EC PRIVATE KEY', privateKeyDer('P-521')),
  }
}

const rsaKey = (bits: number): KeyObject => {
  const part = (size: number) => Buffer.alloc(size / 8, 0xe7).toString('base64url')
  const key = {
    kty: 'RSA',
    n: part(bits),
    e: 'AQAB',
    d: part(bits),
    p: part(bits / 2),
    q: part(bits / 2),
    dp: part(bits / 2),
    dq: part(bits / 2),
    qi: part(bits / 2),
  }
  return createPrivateKey({ key, format: 'jwk' })
}

const certificateCalls: HostileCall[] = [
  ...manyCertificates.flatMap(([name, text]) => [
    call('crypto.x509.parse_and_verify_certificates', name, () => [text()]),
    call('crypto.x509.parse_certificates', name, () => [text()]),
  ]),
  call('crypto.x509.parse_and_verify_certificates_with_options', 'all vouch for each other', () => [
    everybodyVouches(20),
    json({ DNSName: 'a' }),
  ]),
  call('crypto.x509.parse_certificate_request', 'many elements', () => [manyCertificates[5]![1]()]),
  call('crypto.x509.parse_keypair', 'a key without its point', () => [keyPair().certificate, keyPair().key]),
  call('crypto.x509.parse_keypair', 'many blocks', () => [keyPair().certificate, repeated(keyPair().key)]),
  ...['P-256', 'P-384', 'P-521'].map((curve) =>
    call('crypto.parse_private_keys', `many of ${curve} without their points`, () => [manyPrivateKeys(curve)]),
  ),
  call('crypto.x509.parse_rsa_private_key', 'many keys', () => [manyPrivateKeys('P-521')]),
  call('crypto.parse_private_keys', 'a large RSA key', () => [
    pem('PRIVATE KEY', rsaKey(65_536).export({ format: 'der', type: 'pkcs8' })),
  ]),
  call('crypto.x509.parse_rsa_private_key', 'a large RSA key', () => [
    pem('PRIVATE KEY', rsaKey(65_536).export({ format: 'der', type: 'pkcs8' })),
  ]),
]

export const keyCalls: HostileCall[] = [...tokenCalls, ...certificateCalls]
