import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import type { AuthorizationResponse } from './authorization-response.ts'

/** Where an interaction led, with the cookies that it set: whoever submits a page twice gets the same answer twice. */
export interface Redirect {
  response: AuthorizationResponse
  setCookies: readonly string[]
}

// Only the browser can make the key: the database has a digest of its cookie. A cipher under plain bytes takes twice as
// long.
const keyOf = (browser: string, interactionId: string): KeyObject =>
  createSecretKey(new Uint8Array(hkdfSync('sha256', browser, interactionId, 'interaction redirect', 32)))

/** Layout: nonce (12) · tag (16) · ciphertext. */
export const sealRedirect = (redirect: Redirect, browser: string, interactionId: string): Buffer => {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', keyOf(browser, interactionId), nonce)
  const ciphertext = Buffer.concat([cipher.update(JSON.stringify(redirect)), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext])
}

/** Throws when it was sealed for another browser or interaction. */
export const openRedirect = (sealed: Buffer, browser: string, interactionId: string): Redirect => {
  const decipher = createDecipheriv('aes-256-gcm', keyOf(browser, interactionId), sealed.subarray(0, 12))
  decipher.setAuthTag(sealed.subarray(12, 28))
  const text = Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString()
  // What `sealRedirect` has written, as the tag proves.
  return JSON.parse(text) as Redirect
}
