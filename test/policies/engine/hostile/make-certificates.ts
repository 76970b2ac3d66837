import { createPublicKey, type KeyObject, sign } from 'node:crypto'

/** As much of DER (X.690) as a certificate needs that nobody else would make. */
export const der = {
  tagged: (tag: number, content: Buffer): Buffer => {
    const { length } = content
    const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 255]
    return Buffer.concat([Buffer.from([tag, ...size]), content])
  },
  sequence: (...parts: Buffer[]): Buffer => der.tagged(0x30, Buffer.concat(parts)),
  integer: (value: number): Buffer => der.tagged(2, Buffer.from([value])),
  /** Arcs below 16 384. */
  oid: (text: string): Buffer => {
    const [first = 0, second = 0, ...others] = text.split('.').map(Number)
    const bytes = others.flatMap((arc) => (arc < 128 ? [arc] : [0x80 | (arc >> 7), arc & 127]))
    return der.tagged(6, Buffer.from([first * 40 + second, ...bytes]))
  },
}

export interface NamedExtension {
  id: string
  value: Buffer
}

export interface Certified {
  subject: string
  issuer: string
  key: KeyObject
  /** An elliptic curve's private key. */
  by: KeyObject
  ca: boolean
  extensions?: NamedExtension[]
}

const name = (text: string): Buffer =>
  der.sequence(der.tagged(0x31, der.sequence(der.oid('2.5.4.3'), der.tagged(0x0c, Buffer.from(text)))))

const ecdsaWithSha256 = Buffer.from('300a06082a8648ce3d040302', 'hex')

/** The DER of a certificate of version 3 that is valid until 2049. */
export const certify = ({ subject, issuer, key, by, ca, extensions = [] }: Certified): Buffer => {
  const basic = { id: '2.5.29.19', value: der.sequence(...(ca ? [der.tagged(1, Buffer.from([255]))] : [])) }
  const validity = der.sequence(
    ...['200101000000Z', '491231000000Z'].map((time) => der.tagged(0x17, Buffer.from(time))),
  )
  const body = der.sequence(
    der.tagged(0xa0, der.integer(2)),
    der.integer(1),
    ecdsaWithSha256,
    name(issuer),
    validity,
    name(subject),
    (key.type === 'public' ? key : createPublicKey(key)).export({ format: 'der', type: 'spki' }),
    der.tagged(
      0xa3,
      der.sequence(...[basic, ...extensions].map(({ id, value }) => der.sequence(der.oid(id), der.tagged(4, value)))),
    ),
  )
  const signature = sign('sha256', body, by)
  return der.sequence(body, ecdsaWithSha256, der.tagged(3, Buffer.concat([Buffer.from([0]), signature])))
}
