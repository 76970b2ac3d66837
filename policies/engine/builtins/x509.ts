import { X509Certificate } from 'node:crypto'
import { isNumber, type RegoObject, toInteger, type Value } from '../values.ts'
import { type Certificate, parseCertificate, parseCertificateRequest } from '../x509/certificate.ts'
import { elementsOf } from '../x509/der.ts'
import { goPrivateKey, isPair, jwkOf, readPrivateKey } from '../x509/private-keys.ts'
import { type VerifyOptions, verifyChain } from '../x509/verify.ts'
import { asItems, asObject, asString, objectOf, refuse } from './arguments.ts'
import type { EvaluationContext, HostBuiltin } from './index.ts'

const pemBlock = /-----BEGIN ([A-Z0-9 ]+)-----\s+([A-Za-z0-9+/=\s]+?)\s*-----END \1-----/g

interface Block {
  type: string
  pem: string
  der: Buffer
}

const blocksOf = (text: string): Block[] =>
  [...text.matchAll(pemBlock)].map(([pem, type, body]) => ({ type: type!, pem, der: Buffer.from(body!, 'base64') }))

/** PEM, or base64 of PEM or of DER. */
const decoded = (text: string): { text: string; bytes: Buffer } => {
  if (text.trimStart().startsWith('-----BEGIN')) return { text, bytes: Buffer.from(text) }
  if (!/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(text)) refuse('neither PEM nor base64')
  const bytes = Buffer.from(text, 'base64')
  return { text: bytes.toString('latin1'), bytes }
}

const isPem = (text: string): boolean => text.trimStart().startsWith('-----BEGIN')

const ofType = (text: string, ...types: string[]): Buffer[] =>
  blocksOf(text)
    .filter(({ type }) => types.includes(type))
    .map(({ der }) => der)

const certificates = (given: string): Certificate[] => {
  const { text, bytes } = decoded(given)
  const found = isPem(text) ? ofType(text, 'CERTIFICATE') : elementsOf(bytes).map(({ whole }) => whole)
  return found.map(parseCertificate)
}

const certificateRequest = (given: string): RegoObject => {
  const { text, bytes } = decoded(given)
  const [found] = isPem(text) ? ofType(text, 'CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST') : [bytes]
  return parseCertificateRequest(found ?? refuse('there is no certificate request'))
}

// --- verifying

const usageNames =
  'Any ServerAuth ClientAuth CodeSigning EmailProtection IPSECEndSystem IPSECTunnel IPSECUser TimeStamping OCSPSigning MicrosoftServerGatedCrypto NetscapeServerGatedCrypto MicrosoftCommercialCodeSigning MicrosoftKernelCodeSigning'
    .split(' ')
    .map((name) => `KeyUsage${name}`)

const serverAuth = 1

const optionReaders: Record<string, (value: Value) => Partial<VerifyOptions>> = {
  CurrentTime: (value) => ({
    now: isNumber(value) ? (toInteger(value) ?? refuse('not an integer')) : refuse('CurrentTime must be a number'),
  }),
  DNSName: (value) => ({ dnsName: asString(value) }),
  KeyUsages: (value) => ({
    usages: asItems(value).map((name) => {
      const number = usageNames.indexOf(asString(name))
      return number < 0 ? refuse('unknown key usage') : number
    }),
  }),
  // Go's bound on its own work; ours is the number of certificates.
  MaxConstraintComparisons: () => ({}),
}

const verifyOptions = (options: RegoObject, { nowNs }: EvaluationContext): VerifyOptions => {
  const read = [...options].map(([name, value]) => {
    const reader = typeof name === 'string' && Object.hasOwn(optionReaders, name) ? optionReaders[name] : undefined
    return reader ? reader(value) : refuse('unknown option')
  })
  const given: Partial<VerifyOptions> = Object.assign({}, ...read)
  return { ...given, usages: given.usages?.length ? given.usages : [serverAuth], now: given.now ?? nowNs() }
}

/** `URIStrings` is OPA's addition where certificates are only parsed. */
const goCertificate = ({ value }: Certificate): RegoObject =>
  new Map([...value].filter(([name]) => name !== 'URIStrings'))

const parseAndVerify = (given: string, options: VerifyOptions): Value => {
  const chain = verifyChain(certificates(given), options)
  return chain ? [true, chain.map(goCertificate)] : [false, []]
}

// --- private keys

const privateKeyTypes = ['PRIVATE KEY', 'RSA PRIVATE KEY', 'EC PRIVATE KEY']

const privateKeys = (given: string): Value => {
  if (given === '') return null
  const { text } = decoded(given)
  return blocksOf(text)
    .filter(({ type }) => privateKeyTypes.includes(type))
    .map(({ pem }) => goPrivateKey(readPrivateKey(pem)))
}

const firstPrivateKey = (given: string) => {
  const block = blocksOf(decoded(given).text).find(({ type }) => privateKeyTypes.includes(type))
  return block && readPrivateKey(block.pem)
}

const privateKeyJwk = (given: string): Value => {
  const key = firstPrivateKey(given)
  return key ? jwkOf(key) : null
}

/** Go's `tls.Certificate`. */
const keyPair = (certificateText: string, keyText: string): Value => {
  const chain = certificates(certificateText)
  const key = firstPrivateKey(keyText) ?? refuse('there is no private key')
  const [leaf = refuse('there is no certificate')] = chain
  if (!isPair(key, new X509Certificate(leaf.der).publicKey)) refuse('the private key is not that of the certificate')
  return objectOf({
    Certificate: chain.map(({ der }) => der.toString('base64')),
    PrivateKey: goPrivateKey(key),
    Leaf: goCertificate(leaf),
    OCSPStaple: null,
    SignedCertificateTimestamps: null,
    SupportedSignatureAlgorithms: null,
  })
}

export const x509Builtins: Record<string, HostBuiltin> = {
  'crypto.parse_private_keys': ([text]) => privateKeys(asString(text)),
  'crypto.x509.parse_and_verify_certificates': ([text], context) =>
    parseAndVerify(asString(text), verifyOptions(new Map(), context)),
  'crypto.x509.parse_and_verify_certificates_with_options': ([text, options], context) =>
    parseAndVerify(asString(text), verifyOptions(asObject(options), context)),
  'crypto.x509.parse_certificate_request': ([text]) => certificateRequest(asString(text)),
  'crypto.x509.parse_certificates': ([text]) => certificates(asString(text)).map(({ value }) => value),
  'crypto.x509.parse_keypair': ([certificate, key]) => keyPair(asString(certificate), asString(key)),
  'crypto.x509.parse_rsa_private_key': ([text]) => privateKeyJwk(asString(text)),
}
