/** RFC 4648 §6, in which authenticator apps take secrets. */
const rfc4648 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
/** Crockford's: no two of its characters look alike. */
const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

const encodeWith = (alphabet: string, bytes: Uint8Array): string => {
  let text = ''
  let pending = 0
  let bits = 0
  for (const byte of bytes) {
    pending = ((pending << 8) | byte) & 0xfff
    bits += 8
    for (; bits >= 5; bits -= 5) text += alphabet[(pending >> (bits - 5)) & 31]
  }
  return bits === 0 ? text : text + alphabet[(pending << (5 - bits)) & 31]
}

/** Without padding. */
export const toBase32 = (bytes: Uint8Array): string => encodeWith(rfc4648, bytes)

/** For people to read and type. */
export const toCrockford = (bytes: Uint8Array): string => encodeWith(crockford, bytes)

/** What somebody typed, as `toCrockford` writes it: `o` may stand for 0, `i` and `l` for 1; blanks and hyphens go. */
export const asCrockford = (typed: string): string =>
  typed.normalize('NFKC').toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1')

/** The bytes of a text in upper or lower case, with or without padding. Undefined when it is none. */
export const fromBase32 = (text: string): Buffer | undefined => {
  const digits = [...text.toUpperCase().replace(/=+$/, '')].map((character) => rfc4648.indexOf(character))
  // As many as whole bytes need, and no bit of a further one (RFC 4648 §3.5).
  if (digits.includes(-1) || [1, 3, 6].includes(digits.length % 8)) return undefined
  const bytes: number[] = []
  let pending = 0
  let bits = 0
  for (const digit of digits) {
    pending = ((pending << 5) | digit) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push((pending >> bits) & 0xff)
  }
  return (pending & ((1 << bits) - 1)) === 0 ? Buffer.from(bytes) : undefined
}
