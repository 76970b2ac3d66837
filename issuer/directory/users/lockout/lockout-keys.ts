import type { Hmac } from '../../../base/hmac-keys-store.ts'
import { addressKey } from '../../../base/rate-limits/address-key.ts'

/** The keys under which failures to sign in are counted (`sign_in_failures`): whoever counts and whoever clears. */
export interface LockoutKeys {
  /** Of nobody's identifier, in its canonical form. */
  identifier(canonical: string): Buffer
  /** Of an account, from browsers that it does not know. */
  user(userId: string): Buffer
  /** Of an account, from a browser that it knows; `digest` as in `known_devices`. */
  device(userId: string, digest: Buffer): Buffer
  /** Of an account, by somebody who has signed in: by session. */
  holder(userId: string, sessionId: string): Buffer
  /** Of an account's second factors, wherever they are tried. */
  secondFactor(userId: string): Buffer
  /** Of codes to reset a password; of an account, or of an identifier that is nobody's. */
  recovery(userIdOrIdentifier: string): Buffer
  address(ip: string): Buffer
  /** Of passkeys that did not fit, from one address. */
  passkeys(ip: string): Buffer
  /** Of codes of devices that were entered in one browser; the value of its cookie. */
  deviceEntry(browser: string): Buffer
  /** The same, from one address. */
  deviceEntryFrom(ip: string): Buffer
}

export const lockoutKeys = (hmac: Hmac): LockoutKeys => {
  const key = (...parts: string[]) => hmac('sign-in-failures', ...parts)
  return {
    identifier: (canonical) => key('identifier', canonical),
    user: (userId) => key('user', userId),
    device: (userId, digest) => key('device', userId, digest.toString('hex')),
    holder: (userId, sessionId) => key('holder', userId, sessionId),
    secondFactor: (userId) => key('second-factor', userId),
    recovery: (userIdOrIdentifier) => key('recovery', userIdOrIdentifier),
    address: (ip) => key('address', addressKey(ip)),
    passkeys: (ip) => key('passkeys', addressKey(ip)),
    deviceEntry: (browser) => key('device-entry', browser),
    deviceEntryFrom: (ip) => key('device-entry-from', addressKey(ip)),
  }
}
