import { asInteger, asString, objectOf, refuse } from '../values/operands.ts'
import { integerOf } from '../values/value.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/** Random values are the same for the same arguments within one decision, as in OPA, and others in the next. */
const bytesToInteger = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`)

const uuidText = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

/** RFC 9562 §5.4. */
const versionFour = (random: Uint8Array): string => {
  const bytes = Buffer.from(random)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return uuidText(bytes)
}

const forms = [
  /^([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})$/i,
  /^urn:uuid:([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})$/i,
  /^.([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12}).$/is,
  /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/i,
]

const variantOf = (octet: number): string => {
  if ((octet & 0xc0) === 0x80) return 'RFC4122'
  if ((octet & 0xe0) === 0xc0) return 'Microsoft'
  return (octet & 0xe0) === 0xe0 ? 'Future' : 'Reserved'
}

/** Ticks of 100 ns between the Gregorian reform (1582-10-15) and 1970. */
const gregorianTicks = 122_192_928_000_000_000n

const domains = ['Person', 'Group', 'Org']

const parseUuid = (text: string) => {
  const hex = forms.map((form) => form.exec(text)?.slice(1).join('')).find((found) => found !== undefined)
  if (hex === undefined) return undefined
  const bytes = Buffer.from(hex, 'hex')
  const version = bytes.readUInt8(6) >> 4
  const variant = variantOf(bytes.readUInt8(8))
  if (version !== 1 && version !== 2) return objectOf({ version, variant })
  const ticks =
    BigInt(bytes.readUInt32BE(0)) |
    (BigInt(bytes.readUInt16BE(4)) << 32n) |
    (BigInt(bytes.readUInt16BE(6) & 0xfff) << 48n)
  const local = (bytes.readUInt8(10) & 2) !== 0 ? 'local' : 'global'
  const cast = (bytes.readUInt8(10) & 1) !== 0 ? 'multicast' : 'unicast'
  const domain = bytes.readUInt8(9)
  return objectOf({
    version,
    variant,
    time: integerOf((ticks - gregorianTicks) * 100n),
    clocksequence: bytes.readUInt16BE(8) & 0x3fff,
    nodeid: bytes
      .subarray(10)
      .toString('hex')
      .replace(/..(?=.)/g, '$&-'),
    macvariables: `${local}:${cast}`,
    ...(version === 2 && { id: bytes.readUInt32BE(0), domain: domains[domain] ?? `Domain${domain}` }),
  })
}

export const randomBuiltins: BuiltinTable = {
  'rand.intn': builtin([asString, asInteger], (purpose, most, { random }) => {
    const below = most < 0n ? -most : most
    if (below === 0n) return 0
    if (below >= 2n ** 63n) refuse('the limit is out of range')
    // 64 bits more than needed, so that no remainder is noticeably likelier than another.
    return integerOf(bytesToInteger(random(`intn ${most} ${purpose}`, 16)) % below)
  }),
  'uuid.parse': builtin([asString], parseUuid),
  'uuid.rfc4122': builtin([asString], (purpose, { random }) => versionFour(random(`uuid ${purpose}`, 16))),
}
