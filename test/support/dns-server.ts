import { createSocket } from 'node:dgram'
import { promises as dns, type LookupAddress } from 'node:dns'
import { isIP, isIPv6 } from 'node:net'
import type { Resolve } from '../../platform/http/outbound.ts'

/** What a name has. One text is an address or, as an alias (CNAME), another name; the rest is addresses. */
export type ZoneEntry =
  | string
  | readonly string[]
  /** `ttl` in seconds, default 0; `ipv6: 'failing'`: questions for AAAA get SERVFAIL. */
  | { addresses: readonly string[]; ttl?: number; ipv6?: 'failing' }
  /** What is wrong with the server for this name. */
  | { broken: 'failing' | 'silent' }

/** May be changed while the server runs. Names that are not in it do not exist. */
export type Zone = Record<string, ZoneEntry>

const typeA = 1
const typeCname = 5
const typeAaaa = 28

const noError = 0
const serverFailure = 2
const noSuchName = 3

/**
 * A real name server for a zone, and what resolves by it. Answers questions for A and AAAA with the whole chain of
 * aliases, as resolvers do.
 */
export const startDnsServer = async (zone: Zone) => {
  const asked: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const { name, type, end } = questionOf(query)
    asked.push(name)
    const answer = answerTo(name, type, zone)
    if (answer) socket.send(message(query, end, answer), port, address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const address = `127.0.0.1:${socket.address().port}`
  const resolver = new dns.Resolver()
  resolver.setServers([address])
  const resolve: Resolve = async (hostname) =>
    (await resolver.resolve4(hostname)).map((address): LookupAddress => ({ address, family: 4 }))
  return {
    /** With its port. */
    address,
    /** Names, in the order of questions. */
    asked,
    resolve,
    close: () => new Promise<void>((done) => socket.close(done)),
  }
}

/** RFC 1035 §4.1.2. */
const questionOf = (query: Buffer): { name: string; type: number; end: number } => {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

interface Answer {
  code: number
  records: Buffer[]
}

/** Undefined: none comes. */
const answerTo = (question: string, type: number, zone: Zone): Answer | undefined => {
  const records: Buffer[] = []
  let name = question
  for (let entry = zone[name]; ; entry = zone[name]) {
    if (entry === undefined) return { code: records.length > 0 ? noError : noSuchName, records }
    if (typeof entry === 'string' && isIP(entry) === 0) {
      records.push(record(name, typeCname, 0, nameBytes(entry)))
      name = entry
      continue
    }
    if (typeof entry === 'object' && 'broken' in entry)
      return entry.broken === 'silent' ? undefined : { code: serverFailure, records: [] }
    const { addresses, ttl = 0, ipv6 = undefined } = entryOf(entry)
    if (type === typeAaaa && ipv6 === 'failing') return { code: serverFailure, records: [] }
    for (const address of addresses) {
      const own = isIPv6(address) ? typeAaaa : typeA
      if (own === type) records.push(record(name, own, ttl, addressBytes(address)))
    }
    return { code: noError, records }
  }
}

const entryOf = (entry: Exclude<ZoneEntry, { broken: string }>) => {
  if (typeof entry === 'string') return { addresses: [entry] }
  return 'addresses' in entry ? entry : { addresses: entry }
}

/** RFC 1035 §4.1: the header, the question as it came, and the records. */
const message = (query: Buffer, questionEnd: number, { code, records }: Answer): Buffer => {
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180 | code, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, query.subarray(12, questionEnd), ...records])
}

const nameBytes = (name: string) =>
  Buffer.concat([...name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])), Buffer.of(0)])

const addressBytes = (address: string): Buffer => {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number))
  const [before = '', after = ''] = address.split('::')
  const words = (text: string) => (text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16)))
  const [first, last] = [words(before), words(after)]
  const all = [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
  const bytes = Buffer.alloc(16)
  for (const [index, word] of all.entries()) bytes.writeUInt16BE(word, index * 2)
  return bytes
}

/** Of class IN. */
const record = (name: string, type: number, ttl: number, data: Buffer): Buffer => {
  const fields = Buffer.alloc(10)
  fields.writeUInt16BE(type, 0)
  fields.writeUInt16BE(1, 2)
  fields.writeUInt32BE(ttl, 4)
  fields.writeUInt16BE(data.length, 8)
  return Buffer.concat([nameBytes(name), fields, data])
}
