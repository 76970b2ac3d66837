import { createHmac, createSecretKey, randomBytes, timingSafeEqual } from 'node:crypto'
import { encode, renderSVG } from 'uqr'
import { fromBase32, toBase32 } from './base32.ts'

/** RFC 6238, with what all authenticator apps know: SHA-1, six digits, a code every 30 s. */

const digits = 6
const stepSeconds = 30
/** Steps that a clock may be off, in both directions. */
const tolerance = 1
/** In bytes: as long as what HMAC-SHA-1 makes (RFC 4226 §4). */
const secretBytes = { made: 20, min: 16, max: 64 } as const

/** Base32. */
export const newTotpSecret = (): string => toBase32(randomBytes(secretBytes.made))

/** In bytes. Undefined for what is no base32, or for a secret of an odd length. */
export const readTotpSecret = (secret: string): Buffer | undefined => {
  const bytes = fromBase32(secret)
  if (bytes === undefined || bytes.length < secretBytes.min || bytes.length > secretBytes.max) return undefined
  return bytes
}

/** RFC 4226 §5.3 */
export const hotp = (secret: Uint8Array, counter: number, length: number = digits): string => {
  const moving = Buffer.alloc(8)
  moving.writeBigUInt64BE(BigInt(counter))
  // An HMAC under plain bytes takes longer.
  const digest = createHmac('sha1', createSecretKey(secret)).update(moving).digest()
  const number = digest.readUInt32BE(digest[19]! & 0x0f) & 0x7fffffff
  return String(number % 10 ** length).padStart(length, '0')
}

export const totpStep = (now: Date): number => Math.floor(now.getTime() / 1000 / stepSeconds)

/**
 * The newest step near `now` that this is the code of. Undefined when there is none. A step is good once: whoever
 * accepts it has `useTotpStep` say so.
 */
export const matchingStep = (secret: Uint8Array, typed: string, now: Date): number | undefined => {
  const code = Buffer.from(typed.normalize('NFKC').replace(/\s/g, ''))
  if (code.length !== digits) return undefined
  const current = totpStep(now)
  let found: number | undefined
  // Each is looked at, so that the time tells nothing. The newest counts: else a code that two steps share were good
  // twice.
  for (let step = current - tolerance; step <= current + tolerance; step++) {
    if (timingSafeEqual(Buffer.from(hotp(secret, step)), code)) found = step
  }
  return found
}

/**
 * What an authenticator app reads (`otpauth:`). `issuer` and `account` are what it shows; they are escaped, so that
 * neither can say anything else.
 */
export const totpUri = ({ issuer, account, secret }: { issuer: string; account: string; secret: string }): string => {
  // The label is told apart by a colon, which encodeURIComponent escapes.
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  const parameters = { secret, issuer, algorithm: 'SHA1', digits, period: stepSeconds }
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  return `otpauth://totp/${label}?${query.join('&')}`
}

/** An `<svg>` element: no script, no style, nothing that is loaded. */
export const qrSvg = (text: string): string => renderSVG(text, { ecc: 'M', border: 4 })

/**
 * The same, for a screen that nothing soils, as lines of width 1: `path` draws the dark ones of `size` times `size`
 * modules, each along its top.
 */
export const qrPicture = (text: string): { size: number; path: string } => {
  const { size, data } = encode(text, { ecc: 'L', border: 4 })
  let path = 'M0 0'
  const at = { x: 0, y: 0 }
  for (const [y, row] of data.entries()) {
    const modules = row.map((isDark) => (isDark ? '#' : ' ')).join('')
    for (const { index: x, 0: dark } of modules.matchAll(/#+/g)) {
      // From where the last one ended: half as long as from the corner.
      path += `m${x - at.x} ${y - at.y}h${dark.length}`
      Object.assign(at, { x: x + dark.length, y })
    }
  }
  return { size, path }
}

/** The same for `<img src>`. */
export const qrDataUrl = (text: string): string =>
  `data:image/svg+xml;base64,${Buffer.from(qrSvg(text)).toString('base64')}`
