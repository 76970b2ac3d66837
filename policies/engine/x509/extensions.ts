import { objectOf } from '../values/operands.ts'
import type { Value } from '../values/value.ts'
import {
  bitsOf,
  childrenOf,
  context,
  type Element,
  elementsOf,
  expectTag,
  integerOf,
  oidOf,
  onlyElement,
  tags,
} from './der.ts'
import { type AlternativeNames, addressOf, alternativeNames } from './names.ts'

export interface Extension {
  id: number[]
  critical: boolean
  value: Buffer
}

export const extensionsOf = (list: Element | undefined): Extension[] =>
  childrenOf(list).map((element) => {
    const [id, second, third] = childrenOf(element)
    const critical = second?.tag === tags.boolean && second.content[0] !== 0
    return { id: oidOf(id), critical, value: expectTag(third ?? second, tags.octetString).content }
  })

export const extensionValue = ({ id, critical, value }: Extension): Value =>
  objectOf({ Id: id, Critical: critical, Value: value.toString('base64') })

/** What certificates say beyond the basic fields (RFC 5280 §4.2); absent members are as Go has them then. */
export interface Details {
  keyUsage: number
  /** Go's numbers; `unknownUsages` are those that it has none for. */
  usages: number[]
  unknownUsages: number[][]
  basicConstraints: boolean
  isCa: boolean
  /** −1: unlimited. 0 where there are no basic constraints. */
  maxPathLength: number
  subjectKeyId: Buffer | undefined
  authorityKeyId: Buffer | undefined
  names: AlternativeNames
  ocspServers: string[]
  issuingUrls: string[]
  crlPoints: string[]
  policies: number[][]
  constraintsCritical: boolean
  permitted: NameConstraints
  excluded: NameConstraints
  unhandled: number[][]
}

export interface NameConstraints {
  dns: string[]
  emails: string[]
  uris: string[]
  /** Address and mask. */
  ranges: { address: string; mask: Buffer }[]
}

const noConstraints = (): NameConstraints => ({ dns: [], emails: [], uris: [], ranges: [] })

const usageOids = [
  '2.5.29.37.0',
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => `1.3.6.1.5.5.7.3.${number}`),
  '1.3.6.1.4.1.311.10.3.3',
  '2.16.840.1.113730.4.1',
  '1.3.6.1.4.1.311.2.1.22',
  '1.3.6.1.4.1.311.61.1.1',
]

const latin1 = ({ content }: Element): string => content.toString('latin1')

type Reader = (details: Details, value: Buffer, extension: Extension) => void

const readers: Record<string, Reader> = {
  '2.5.29.15': (details, value) => {
    const bits = bitsOf(onlyElement(value))
    details.keyUsage = 0
    for (let bit = 0; bit < 9; bit++) {
      if (((bits[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1) details.keyUsage |= 1 << bit
    }
  },
  '2.5.29.19': (details, value) => {
    const [first, second] = childrenOf(onlyElement(value))
    const hasFlag = first?.tag === tags.boolean
    const length = hasFlag ? second : first
    details.basicConstraints = true
    details.isCa = hasFlag && first.content[0] !== 0
    details.maxPathLength = length ? Number(integerOf(length)) : -1
  },
  '2.5.29.17': (details, value) => {
    details.names = alternativeNames(childrenOf(onlyElement(value)))
  },
  '2.5.29.30': (details, value, { critical }) => {
    details.constraintsCritical = critical
    for (const trees of childrenOf(onlyElement(value))) {
      readConstraints(trees.tag === context(0, { constructed: true }) ? details.permitted : details.excluded, trees)
    }
  },
  '2.5.29.31': (details, value) => {
    for (const point of childrenOf(onlyElement(value))) {
      const [name] = childrenOf(point)
      if (name?.tag !== context(0, { constructed: true })) continue
      for (const full of elementsOf(name.content).filter(({ tag }) => tag === context(0, { constructed: true }))) {
        details.crlPoints.push(...alternativeNames(elementsOf(full.content)).uris)
      }
    }
  },
  '2.5.29.35': (details, value) => {
    details.authorityKeyId = childrenOf(onlyElement(value)).find(({ tag }) => tag === context(0))?.content
  },
  '2.5.29.14': (details, value) => {
    details.subjectKeyId = expectTag(onlyElement(value), tags.octetString).content
  },
  '2.5.29.37': (details, value) => {
    for (const element of childrenOf(onlyElement(value))) {
      const oid = oidOf(element)
      const known = usageOids.indexOf(oid.join('.'))
      if (known >= 0) details.usages.push(known)
      else details.unknownUsages.push(oid)
    }
  },
  '2.5.29.32': (details, value) => {
    details.policies = childrenOf(onlyElement(value)).map((policy) => oidOf(childrenOf(policy)[0]))
  },
  '1.3.6.1.5.5.7.1.1': (details, value) => {
    for (const description of childrenOf(onlyElement(value))) {
      const [method, location] = childrenOf(description)
      if (location?.tag !== context(6)) continue
      const kind = oidOf(method).join('.')
      if (kind === '1.3.6.1.5.5.7.48.1') details.ocspServers.push(latin1(location))
      if (kind === '1.3.6.1.5.5.7.48.2') details.issuingUrls.push(latin1(location))
    }
  },
}

const readConstraints = (into: NameConstraints, trees: Element): void => {
  for (const tree of elementsOf(trees.content)) {
    const [name] = childrenOf(tree)
    if (name?.tag === context(1)) into.emails.push(latin1(name))
    if (name?.tag === context(2)) into.dns.push(latin1(name))
    if (name?.tag === context(6)) into.uris.push(latin1(name))
    if (name?.tag !== context(7)) continue
    const half = name.content.length / 2
    into.ranges.push({ address: addressOf(name.content.subarray(0, half)), mask: name.content.subarray(half) })
  }
}

export const detailsOf = (extensions: readonly Extension[]): Details => {
  const details: Details = {
    keyUsage: 0,
    usages: [],
    unknownUsages: [],
    basicConstraints: false,
    isCa: false,
    maxPathLength: 0,
    subjectKeyId: undefined,
    authorityKeyId: undefined,
    names: { dns: [], emails: [], addresses: [], uris: [] },
    ocspServers: [],
    issuingUrls: [],
    crlPoints: [],
    policies: [],
    constraintsCritical: false,
    permitted: noConstraints(),
    excluded: noConstraints(),
    unhandled: [],
  }
  for (const extension of extensions) {
    const read = readers[extension.id.join('.')]
    if (read) read(details, extension.value, extension)
    else if (extension.critical) details.unhandled.push(extension.id)
  }
  return details
}
