import { createSocket } from 'node:dgram'
import { promises as dns, type LookupAddress } from 'node:dns'
import type { Resolve } from '../../platform/http/outbound.ts'

/** A record leads to an IPv4 address or, as an alias (CNAME), to another name. */
export type Zone = Record<string, string>

const isAddress = (text: string) => /^[\d.]+$/.test(text)
const typeA = 1
const typeCname = 5

/**
 * A real name server for a zone, and what resolves by it. Answers questions for A with the whole chain of aliases, as
 * resolvers do.
 */
export const startDnsServer = async (zone: Zone) => {
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => socket.send(answerTo(query, zone), port, address))
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const resolver = new dns.Resolver()
  resolver.setServers([`127.0.0.1:${socket.address().port}`])
  const resolve: Resolve = async (hostname) =>
    (await resolver.resolve4(hostname)).map((address): LookupAddress => ({ address, family: 4 }))
  return { resolve, close: () => new Promise<void>((done) => socket.close(done)) }
}

/**
 * RFC 1035 §4.1: the header, the question as it came, and the records; without any the name does not exist (NXDOMAIN).
 */
const answerTo = (query: Buffer, zone: Zone): Buffer => {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const question = query.subarray(12, at + 5)
  const records: Buffer[] = []
  for (let name = labels.join('.'); zone[name] !== undefined; name = zone[name]!)
    records.push(recordOf(name, zone[name]!))
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(records.length > 0 ? 0x8180 : 0x8183, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, question, ...records])
}

const nameBytes = (name: string) =>
  Buffer.concat([...name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])), Buffer.of(0)])

const recordOf = (name: string, value: string): Buffer => {
  const data = isAddress(value) ? Buffer.from(value.split('.').map(Number)) : nameBytes(value)
  const fields = Buffer.alloc(10)
  fields.writeUInt16BE(isAddress(value) ? typeA : typeCname, 0)
  // Class IN; for no second.
  fields.writeUInt16BE(1, 2)
  fields.writeUInt16BE(data.length, 8)
  return Buffer.concat([nameBytes(name), fields, data])
}
