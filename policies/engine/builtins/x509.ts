import { type KeyObject, X509Certificate } from 'node:crypto'
import type { Meter } from '../base/meter.ts'
import { decodeBase64 } from '../go/base64.ts'
import { decodePem, pemBlocks } from '../go/pem.ts'
import { asInt64, asItems, asObject, asString, objectOf, refuse, unlessRefused } from '../values/operands.ts'
import type { RegoObject, Value } from '../values/value.ts'
import { type Certificate, parseCertificate, parseCertificateRequest } from '../x509/certificate.ts'
import { elementsOf } from '../x509/der.ts'
import {
  goPrivateKey,
  isPair,
  jwkOf,
  type PrivateKeyForm,
  payForPrivateKey,
  readAnyPrivateKey,
  readPrivateKey,
} from '../x509/private-keys.ts'
import { type VerifyOptions, verifyChain } from '../x509/verify.ts'
import { type BuiltinTable, builtin, type EvaluationContext } from './builtin.ts'

/** PEM, or base64 of PEM or of DER. `undefined`: neither. */
const decoded = (text: string): { text: string; bytes: Buffer } | undefined => {
  if (isPem(text)) return { text, bytes: Buffer.from(text) }
  const bytes = decodeBase64(text)
  return bytes && { text: bytes.toString('latin1'), bytes }
}

const required = <Found>(found: Found | undefined): Found => found ?? refuse('neither PEM nor base64')

const isPem = (text: string): boolean => text.startsWith('-----BEGIN')

/** For each character of a certificate or a key. */
const unitsToRead = 18

const certificates = (given: string, { spend }: Meter): Certificate[] => {
  spend(unitsToRead * given.length)
  const { text, bytes } = required(decoded(given))
  const blocks = isPem(text) ? pemBlocks(text) : undefined
  if (blocks?.some(({ type }) => type !== 'CERTIFICATE')) refuse('a PEM block is no certificate')
  const der = blocks ? Buffer.concat(blocks.map((block) => block.bytes)) : bytes
  return elementsOf(der).map(({ whole }) => parseCertificate(whole))
}

const requestLabel = 'CERTIFICATE REQUEST'

const certificateRequest = (given: string, { spend }: Meter): RegoObject => {
  spend(unitsToRead * given.length)
  const bytes = given.startsWith(`-----BEGIN ${requestLabel}-----`) ? Buffer.from(given) : required(decodeBase64(given))
  const block = decodePem(bytes.toString('latin1'))
  if (block && block.type !== requestLabel) refuse('a PEM block is no certificate request')
  return parseCertificateRequest(block?.bytes ?? bytes)
}

// --- verifying

const usageNames =
  'Any ServerAuth ClientAuth CodeSigning EmailProtection IPSECEndSystem IPSECTunnel IPSECUser TimeStamping OCSPSigning MicrosoftServerGatedCrypto NetscapeServerGatedCrypto MicrosoftCommercialCodeSigning MicrosoftKernelCodeSigning'
    .split(' ')
    .map((name) => `KeyUsage${name}`)

const serverAuth = 1

const optionReaders = new Map<Value, (value: Value) => Partial<VerifyOptions>>(
  Object.entries({
    CurrentTime: (value) => ({ now: asInt64(value) }),
    DNSName: (value) => ({ dnsName: unquoted(asString(value)) }),
    KeyUsages: (value) => ({
      usages: asItems(value)
        .filter((name) => typeof name === 'string')
        .map((name) => {
          const number = usageNames.indexOf(unquoted(name))
          return number < 0 ? refuse('unknown key usage') : number
        }),
    }),
    // Go's bound on its own work; ours is the number of certificates.
    MaxConstraintComparisons: (value) => {
      asInt64(value)
      return {}
    },
  }),
)

const unquoted = (text: string): string => text.replace(/^"+/, '').replace(/(?<!")"+$/, '')

const verifyOptions = (options: RegoObject, { nowNs }: EvaluationContext): VerifyOptions => {
  const read = [...options].map(([name, value]) => {
    if (typeof name !== 'string') return {}
    const reader = optionReaders.get(name) ?? refuse('unknown option')
    return reader(value)
  })
  const given: Partial<VerifyOptions> = Object.assign({}, ...read)
  return { ...given, usages: given.usages?.length ? given.usages : [serverAuth], now: given.now ?? nowNs() }
}

const unverified: Value = [false, []]

/** Answers `unverified` for what is no certificate; wrong options are refused. */
const verified = (
  given: string,
  options: () => VerifyOptions,
  tell: (certificate: Certificate) => Value,
  meter: Meter,
): Value => {
  const found = unlessRefused(() => certificates(given, meter))
  const chain = found && verifyChain(found, options(), meter)
  return chain ? [true, chain.map(tell)] : unverified
}

/** Go's certificate without what OPA adds to it elsewhere: `URIStrings`. */
const goCertificate = ({ value }: Certificate): RegoObject =>
  new Map([...value].filter(([name]) => name !== 'URIStrings'))

// --- private keys

/** What Node calls the DER in blocks of these types. */
const privateKeyTypes = new Map<string, PrivateKeyForm>([
  ['PRIVATE KEY', 'pkcs8'],
  ['RSA PRIVATE KEY', 'pkcs1'],
  ['EC PRIVATE KEY', 'sec1'],
])

const privateKeys = (text: string, meter: Meter): KeyObject[] => {
  meter.spend(unitsToRead * text.length)
  return pemBlocks(decodeBase64(text)?.toString('latin1') ?? text).flatMap(({ type, bytes }) => {
    const form = privateKeyTypes.get(type)
    if (!form) return []
    payForPrivateKey(bytes, meter)
    return [readPrivateKey(bytes, form)]
  })
}

const privateKeyJwk = (given: string, meter: Meter): Value => {
  if (given === '') refuse('there is no PEM')
  const [key] = privateKeys(required(decoded(given)).text, meter)
  return key ? jwkOf(key) : null
}

/**
 * Go's `tls.Certificate`: its parts may be labelled as anything, as long as there is a certificate and a private key.
 */
const keyPair = (certificateText: string, keyText: string, meter: Meter): Value => {
  meter.spend(unitsToRead * (certificateText.length + keyText.length))
  const chain = tlsBlocks(certificateText, 'CERTIFICATE').filter(({ type }) => type === 'CERTIFICATE')
  const [keyBlock] = tlsBlocks(keyText, 'PRIVATE KEY').filter(({ type }) => /^(?:.* )?PRIVATE KEY$/.test(type))
  const [leafBlock] = chain
  if (!leafBlock || !keyBlock) return refuse('a certificate or the private key is missing')
  const leaf = parseCertificate(leafBlock.bytes)
  payForPrivateKey(keyBlock.bytes, meter)
  const key = readAnyPrivateKey(keyBlock.bytes)
  if (!isPair(key, new X509Certificate(leaf.der).publicKey)) refuse('the private key is not that of the certificate')
  return objectOf({
    Certificate: chain.map(({ bytes }) => bytes.toString('base64')),
    PrivateKey: goPrivateKey(key),
    Leaf: goCertificate(leaf),
    OCSPStaple: null,
    SignedCertificateTimestamps: null,
    SupportedSignatureAlgorithms: null,
  })
}

const tlsBlocks = (given: string, type: string): { type: string; bytes: Buffer }[] => {
  const { text, bytes } = required(decoded(given))
  return isPem(text) ? pemBlocks(text) : [{ type, bytes }]
}

export const x509Builtins: BuiltinTable = {
  'crypto.parse_private_keys': builtin([asString], (text, meter) =>
    text === '' ? null : privateKeys(text, meter).map(goPrivateKey),
  ),
  'crypto.x509.parse_and_verify_certificates': builtin([asString], (text, context) =>
    verified(
      text,
      () => verifyOptions(new Map(), context),
      ({ value }) => value,
      context,
    ),
  ),
  'crypto.x509.parse_and_verify_certificates_with_options': builtin([asString, asObject], (text, options, context) =>
    verified(text, () => verifyOptions(options, context), goCertificate, context),
  ),
  'crypto.x509.parse_certificate_request': builtin([asString], certificateRequest),
  'crypto.x509.parse_certificates': builtin([asString], (text, meter) =>
    certificates(text, meter).map(({ value }) => value),
  ),
  'crypto.x509.parse_keypair': builtin([asString, asString], keyPair),
  'crypto.x509.parse_rsa_private_key': builtin([asString], privateKeyJwk),
}
