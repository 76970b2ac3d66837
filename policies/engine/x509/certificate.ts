import { objectOf, refuse } from '../values/operands.ts'
import { integerOf as narrow, type RegoObject, type Value } from '../values/value.ts'
import {
  bitsOf,
  childrenOf,
  context,
  type Element,
  elementsOf,
  integerOf,
  malformed,
  oidOf,
  onlyElement,
  tags,
  timeOf,
} from './der.ts'
import {
  type Details,
  detailsOf,
  type Extension,
  extensionsOf,
  extensionValue,
  type NameConstraints,
} from './extensions.ts'
import { listOrNull, nameOf, uriValue } from './names.ts'

/** A certificate as OPA gives it to rules (the members of Go's `x509.Certificate`), and its parts for verifying it. */
export interface Certificate {
  value: RegoObject
  der: Buffer
  version: number
  subject: Buffer
  issuer: Buffer
  /** RFC 3339. */
  notBefore: string
  notAfter: string
  details: Details
}

const base64 = (bytes: Buffer | undefined): Value => (bytes === undefined ? null : bytes.toString('base64'))

const publicKeyAlgorithms: Record<string, number> = {
  '1.2.840.113549.1.1.1': 1,
  '1.2.840.10040.4.1': 2,
  '1.2.840.10045.2.1': 3,
  '1.3.101.112': 4,
}

const signatureAlgorithms: Record<string, number> = {
  '1.2.840.113549.1.1.4': 2,
  '1.2.840.113549.1.1.5': 3,
  '1.2.840.113549.1.1.11': 4,
  '1.2.840.113549.1.1.12': 5,
  '1.2.840.113549.1.1.13': 6,
  '1.2.840.10040.4.3': 7,
  '2.16.840.1.101.3.4.3.2': 8,
  '1.2.840.10045.4.1': 9,
  '1.2.840.10045.4.3.2': 10,
  '1.2.840.10045.4.3.3': 11,
  '1.2.840.10045.4.3.4': 12,
  '1.3.101.112': 16,
}

/** RSASSA-PSS says its hash in its parameters. */
const pssHashes: Record<string, number> = {
  '2.16.840.1.101.3.4.2.1': 13,
  '2.16.840.1.101.3.4.2.2': 14,
  '2.16.840.1.101.3.4.2.3': 15,
}

const signatureAlgorithm = (element: Element | undefined): number => {
  const [id, parameters] = childrenOf(element)
  const oid = oidOf(id).join('.')
  if (oid !== '1.2.840.113549.1.1.10') return signatureAlgorithms[oid] ?? 0
  const hash = parameters && childrenOf(parameters).find(({ tag }) => tag === context(0, { constructed: true }))
  return (hash && pssHashes[oidOf(childrenOf(onlyElement(hash.content))[0]).join('.')]) ?? 0
}

const ecPoint = (point: Buffer): { X: Value; Y: Value } => {
  const half = (point.length - 1) / 2
  if (point[0] !== 4 || !Number.isInteger(half)) refuse('unsupported elliptic curve point')
  const coordinate = (bytes: Buffer): Value => narrow(BigInt(`0x${bytes.toString('hex')}`))
  return { X: coordinate(point.subarray(1, 1 + half)), Y: coordinate(point.subarray(1 + half)) }
}

const publicKey = (info: Element | undefined): { algorithm: number; value: Value } => {
  const [id, key] = childrenOf(info)
  const algorithm = publicKeyAlgorithms[oidOf(childrenOf(id)[0]).join('.')] ?? 0
  const bits = bitsOf(key)
  if (algorithm === 1) {
    const [modulus, exponent] = childrenOf(onlyElement(bits))
    return { algorithm, value: objectOf({ N: narrow(integerOf(modulus)), E: narrow(integerOf(exponent)) }) }
  }
  if (algorithm === 3) return { algorithm, value: objectOf({ Curve: new Map(), ...ecPoint(bits) }) }
  return { algorithm, value: algorithm === 4 ? base64(bits) : null }
}

const ranges = ({ ranges: list }: NameConstraints): Value =>
  listOrNull(list.map(({ address, mask }) => objectOf({ IP: address, Mask: mask.toString('base64') })))

const constraintMembers = (prefix: string, constraints: NameConstraints): Record<string, Value> => ({
  [`${prefix}DNSDomains`]: listOrNull(constraints.dns),
  [`${prefix}EmailAddresses`]: listOrNull(constraints.emails),
  [`${prefix}IPRanges`]: ranges(constraints),
  [`${prefix}URIDomains`]: listOrNull(constraints.uris),
})

const detailMembers = (details: Details): Record<string, Value> => ({
  KeyUsage: details.keyUsage,
  ExtKeyUsage: listOrNull(details.usages),
  UnknownExtKeyUsage: listOrNull(details.unknownUsages),
  BasicConstraintsValid: details.basicConstraints,
  IsCA: details.isCa,
  MaxPathLen: details.maxPathLength,
  MaxPathLenZero: details.basicConstraints && details.maxPathLength === 0,
  SubjectKeyId: base64(details.subjectKeyId),
  AuthorityKeyId: base64(details.authorityKeyId),
  OCSPServer: listOrNull(details.ocspServers),
  IssuingCertificateURL: listOrNull(details.issuingUrls),
  CRLDistributionPoints: listOrNull(details.crlPoints),
  PolicyIdentifiers: listOrNull(details.policies),
  Policies: listOrNull(details.policies.map((oid) => oid.join('.'))),
  UnhandledCriticalExtensions: listOrNull(details.unhandled),
  PermittedDNSDomainsCritical: details.constraintsCritical,
  ...constraintMembers('Permitted', details.permitted),
  ...constraintMembers('Excluded', details.excluded),
  // Policies of issuers about policies: Go reads them, nobody has them.
  PolicyMappings: null,
  InhibitAnyPolicy: 0,
  InhibitAnyPolicyZero: false,
  InhibitPolicyMapping: 0,
  InhibitPolicyMappingZero: false,
  RequireExplicitPolicy: 0,
  RequireExplicitPolicyZero: false,
})

const nameMembers = ({ names }: Details): Record<string, Value> => ({
  DNSNames: listOrNull(names.dns),
  EmailAddresses: listOrNull(names.emails),
  IPAddresses: listOrNull(names.addresses),
  URIs: listOrNull(names.uris.map(uriValue)),
})

const extensionMembers = (extensions: readonly Extension[]): Record<string, Value> => ({
  Extensions: listOrNull(extensions.map(extensionValue)),
  ExtraExtensions: null,
})

export const parseCertificate = (der: Buffer): Certificate => {
  const [body = malformed(), algorithm, signature] = childrenOf(onlyElement(der))
  const fields = childrenOf(body)
  const versionTag = fields[0]?.tag === context(0, { constructed: true }) ? fields.shift() : undefined
  const version = versionTag ? Number(integerOf(onlyElement(versionTag.content))) + 1 : 1
  const [serial, , issuer = malformed(), validity, subject = malformed(), keyInfo = malformed(), ...rest] = fields
  const [from, to] = childrenOf(validity)
  const listed = rest.find(({ tag }) => tag === context(3, { constructed: true }))
  const extensions = listed ? extensionsOf(onlyElement(listed.content)) : []
  const details = detailsOf(extensions)
  const key = publicKey(keyInfo)
  const [notBefore, notAfter] = [timeOf(from), timeOf(to)]
  const value = objectOf({
    Raw: base64(der),
    RawTBSCertificate: base64(body.whole),
    RawSubjectPublicKeyInfo: base64(keyInfo.whole),
    RawSubject: base64(subject.whole),
    RawIssuer: base64(issuer.whole),
    Signature: base64(bitsOf(signature)),
    SignatureAlgorithm: signatureAlgorithm(algorithm),
    PublicKeyAlgorithm: key.algorithm,
    PublicKey: key.value,
    Version: version,
    SerialNumber: narrow(integerOf(serial)),
    Issuer: nameOf(issuer),
    Subject: nameOf(subject),
    NotBefore: notBefore,
    NotAfter: notAfter,
    URIStrings: listOrNull(details.names.uris),
    ...extensionMembers(extensions),
    ...nameMembers(details),
    ...detailMembers(details),
  })
  return { value, der, version, subject: subject.whole, issuer: issuer.whole, notBefore, notAfter, details }
}

const extensionRequest = '1.2.840.113549.1.9.14'

/** Go's `x509.CertificateRequest`. */
export const parseCertificateRequest = (der: Buffer): RegoObject => {
  const [body = malformed(), algorithm, signature] = childrenOf(onlyElement(der))
  const [version, subject = malformed(), keyInfo = malformed(), attributes] = childrenOf(body)
  const key = publicKey(keyInfo)
  const parsed = attributes ? elementsOf(attributes.content).map((attribute) => childrenOf(attribute)) : []
  const requests = parsed.filter(([id]) => oidOf(id).join('.') === extensionRequest)
  const extensions = requests.flatMap(([, set]) => childrenOf(set, tags.set).flatMap(extensionsOf))
  return objectOf({
    Raw: base64(der),
    RawTBSCertificateRequest: base64(body.whole),
    RawSubjectPublicKeyInfo: base64(keyInfo.whole),
    RawSubject: base64(subject.whole),
    Signature: base64(bitsOf(signature)),
    SignatureAlgorithm: signatureAlgorithm(algorithm),
    PublicKeyAlgorithm: key.algorithm,
    PublicKey: key.value,
    Version: narrow(integerOf(version)),
    Subject: nameOf(subject),
    Attributes: listOrNull(requests.map(([id, set = malformed()]) => requestedAttribute(oidOf(id), set))),
    ...extensionMembers(extensions),
    ...nameMembers(detailsOf(extensions)),
  })
}

const requestedAttribute = (type: number[], set: Element): Value =>
  objectOf({
    Type: type,
    Value: childrenOf(set, tags.set).map((list) =>
      extensionsOf(list).map(({ id, value }) => objectOf({ Type: id, Value: value.toString('base64') })),
    ),
  })
