import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { Meter } from '../base/meter.ts'
import type { Certificate } from './certificate.ts'
import { verificationCost } from './key-cost.ts'

export interface VerifyOptions {
  /** Nanoseconds since 1970. */
  now: bigint
  dnsName?: string | undefined
  /** Go's numbers of extended key usages; one of them must be allowed all along. */
  usages: readonly number[]
}

const anyUsage = 0
const certificateSign = 1 << 5
const mostIntermediates = 20
/** Go's bound: certificates that vouch for each other make more chains than anybody can try. */
const mostSignatures = 100

/** For each byte of a certificate. */
const unitsToRead = 10
const unitsForCandidate = 50
const unitsForName = 5

/**
 * The chain from the last certificate, the leaf, to the first, the root, with the others as intermediates; `undefined`
 * when there is none that holds. RFC 5280 §6.1 as far as Go goes; names that issuers may not give are refused rather
 * than ignored.
 */
export const verifyChain = (
  certificates: readonly Certificate[],
  options: VerifyOptions,
  meter: Meter,
): Certificate[] | undefined => {
  const [root, ...others] = certificates
  const leaf = others.pop()
  if (!root || !leaf || others.length > mostIntermediates) return undefined
  if (!isValidNow(leaf, options) || leaf.details.unhandled.length > 0 || !isNamed(leaf, options)) return undefined
  // Trusted itself: nobody has to vouch for it.
  if (leaf.der.equals(root.der)) return allowsUsages([leaf], options) ? [leaf] : undefined
  return findChain(leaf, [leaf], { leaf, root, others, options, meter, signatures: 0 })
}

interface Search {
  leaf: Certificate
  root: Certificate
  others: readonly Certificate[]
  options: VerifyOptions
  meter: Meter
  /** Checked so far. */
  signatures: number
}

const findChain = (last: Certificate, chain: Certificate[], search: Search): Certificate[] | undefined => {
  const { leaf, root, others, options } = search
  if (mayIssue(root, last, chain, search)) {
    const whole = [...chain, root]
    if (allowsUsages(whole, options) && allowsNames(leaf, whole.slice(1), search)) return whole
  }
  for (const issuer of others) {
    search.meter.spend(unitsForCandidate)
    if (chain.includes(issuer) || !mayIssue(issuer, last, chain, search)) continue
    const found = findChain(issuer, [...chain, issuer], search)
    if (found) return found
  }
  return undefined
}

const isValidNow = ({ notBefore, notAfter }: Certificate, { now }: VerifyOptions): boolean => {
  const nanoseconds = (text: string): bigint => BigInt(Date.parse(text)) * 1_000_000n
  return now >= nanoseconds(notBefore) && now <= nanoseconds(notAfter)
}

const mayIssue = (
  issuer: Certificate,
  subject: Certificate,
  chain: readonly Certificate[],
  search: Search,
): boolean => {
  const { options } = search
  const { basicConstraints, isCa, keyUsage, maxPathLength, unhandled } = issuer.details
  if (!issuer.subject.equals(subject.issuer) || !isValidNow(issuer, options) || unhandled.length > 0) return false
  if ((issuer.version === 3 && !basicConstraints) || (basicConstraints && !isCa)) return false
  if (keyUsage !== 0 && (keyUsage & certificateSign) === 0) return false
  if (basicConstraints && maxPathLength >= 0 && chain.length - 1 > maxPathLength) return false
  return isSigned(subject, issuer, search)
}

const isSigned = (subject: Certificate, issuer: Certificate, search: Search): boolean => {
  const { meter } = search
  if (++search.signatures > mostSignatures) return false
  meter.spend(unitsToRead * (subject.der.length + issuer.der.length))
  const keys = readBoth(subject, issuer)
  if (!keys) return false
  meter.spend(verificationCost(keys.publicKey))
  return orUndefined(() => keys.certificate.verify(keys.publicKey)) ?? false
}

const readBoth = (subject: Certificate, issuer: Certificate) =>
  orUndefined(() => ({
    certificate: new X509Certificate(subject.der),
    publicKey: new X509Certificate(issuer.der).publicKey,
  }))

const orUndefined = <Result>(read: () => Result): Result | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

const hostPattern = /^[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*$/

const isNamed = (leaf: Certificate, { dnsName }: VerifyOptions): boolean => {
  if (dnsName === undefined || dnsName === '') return true
  const certificate = new X509Certificate(leaf.der)
  const address = dnsName.replace(/^\[(.*)\]$/, '$1')
  if (isIP(address) !== 0) return certificate.checkIP(address) !== undefined
  return hostPattern.test(dnsName) && certificate.checkHost(dnsName, { subject: 'never' }) !== undefined
}

const allowsUsages = (chain: readonly Certificate[], { usages }: VerifyOptions): boolean =>
  usages.includes(anyUsage) ||
  usages.some((usage) =>
    chain.every(({ details }) => {
      if (details.usages.length === 0 && details.unknownUsages.length === 0) return true
      return details.usages.includes(usage) || details.usages.includes(anyUsage)
    }),
  )

/**
 * Constraints on DNS names are checked; with constraints of other kinds the chain does not hold where the leaf has such
 * names.
 */
const allowsNames = (leaf: Certificate, issuers: readonly Certificate[], { meter }: Search): boolean => {
  const { dns, emails, addresses, uris } = leaf.details.names
  return issuers.every(({ details: { permitted, excluded } }) => {
    const others: [string[], unknown[]][] = [
      [emails, [...permitted.emails, ...excluded.emails]],
      [addresses, [...permitted.ranges, ...excluded.ranges]],
      [uris, [...permitted.uris, ...excluded.uris]],
    ]
    if (others.some(([names, constraints]) => names.length > 0 && constraints.length > 0)) return false
    meter.spend(unitsForName * dns.length * (1 + permitted.dns.length + excluded.dns.length))
    const isPermitted = (name: string) => permitted.dns.length === 0 || permitted.dns.some((one) => isWithin(name, one))
    return dns.every((name) => isPermitted(name) && !excluded.dns.some((one) => isWithin(name, one)))
  })
}

/** RFC 5280 §4.2.1.10: a domain and everything below it; with a dot before it only what is below. */
const isWithin = (name: string, domain: string): boolean => {
  const [low, wanted] = [name.toLowerCase(), domain.toLowerCase()]
  if (wanted === '') return true
  return wanted.startsWith('.') ? low.endsWith(wanted) : low === wanted || low.endsWith(`.${wanted}`)
}
