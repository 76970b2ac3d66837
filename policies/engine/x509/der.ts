import { refuse } from '../values/operands.ts'

/** DER (X.690), as far as certificates need it. Everything here throws `BuiltinError` for what is not well-formed. */
export interface Element {
  /** The first byte: class, whether it is made of others, number. */
  tag: number
  /** With the header. */
  whole: Buffer
  content: Buffer
}

export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const

/** `[n]`, primitive or made of others. */
export const context = (number: number, { constructed = false } = {}): number =>
  0x80 | (constructed ? 0x20 : 0) | number

export const malformed = (): never => refuse('malformed DER')

const elementAt = (bytes: Buffer, at: number): Element => {
  const tag = bytes[at] ?? malformed()
  if ((tag & 0x1f) === 0x1f) malformed()
  let length = bytes[at + 1] ?? malformed()
  let start = at + 2
  if (length >= 0x80) {
    const size = length & 0x7f
    if (size === 0 || size > 4 || start + size > bytes.length) malformed()
    length = bytes.readUIntBE(start, size)
    start += size
  }
  if (start + length > bytes.length) malformed()
  return { tag, whole: bytes.subarray(at, start + length), content: bytes.subarray(start, start + length) }
}

/** The elements one behind the other. */
export const elementsOf = (bytes: Buffer): Element[] => {
  const elements: Element[] = []
  for (let at = 0; at < bytes.length; ) {
    const element = elementAt(bytes, at)
    elements.push(element)
    at += element.whole.length
  }
  return elements
}

export const childrenOf = (element: Element | undefined, tag: number = tags.sequence): Element[] =>
  elementsOf(expectTag(element, tag).content)

export const expectTag = (element: Element | undefined, tag: number): Element =>
  element?.tag === tag ? element : malformed()

export const onlyElement = (bytes: Buffer): Element => {
  const [element = malformed(), ...others] = elementsOf(bytes)
  return others.length === 0 ? element : malformed()
}

export const integerOf = (element: Element | undefined): bigint => {
  const { content } = expectTag(element, tags.integer)
  if (content.length === 0) malformed()
  return BigInt.asIntN(content.length * 8, BigInt(`0x${content.toString('hex')}`))
}

export const oidOf = (element: Element | undefined): number[] => {
  const arcs: number[] = []
  let value = 0
  for (const byte of expectTag(element, tags.oid).content) {
    value = value * 128 + (byte & 0x7f)
    if (value > Number.MAX_SAFE_INTEGER) malformed()
    if (byte >= 0x80) continue
    if (arcs.length === 0) {
      const first = Math.min(Math.floor(value / 40), 2)
      arcs.push(first, value - first * 40)
    } else arcs.push(value)
    value = 0
  }
  return arcs
}

/** Without the byte that counts unused bits. */
export const bitsOf = (element: Element | undefined): Buffer => expectTag(element, tags.bitString).content.subarray(1)

/** RFC 5280 §4.1.2.5. */
export const timeOf = (element: Element | undefined): string => {
  const text = element?.content.toString('latin1') ?? ''
  const full = element?.tag === tags.utcTime ? (Number(text.slice(0, 2)) >= 50 ? '19' : '20') + text : text
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(full) ?? malformed()
  return `${year}-${month}-${day}T${hour}:${minute}:${second}Z`
}

const wide = (content: Buffer): string => {
  if (content.length % 2 !== 0) malformed()
  return Buffer.from(content).swap16().toString('utf16le')
}

/** A text of any of ASN.1's kinds. */
export const textOf = ({ tag, content }: Element): string => {
  if (tag === 0x1e) return wide(content)
  return content.toString(tag === 0x14 ? 'latin1' : 'utf8')
}
