import { timingSafeEqual } from 'node:crypto'
import type { Hmac } from '../../base/hmac-keys-store.ts'

/** The CSRF value of the forms of a page: only the session that the page was made for can send it back. */
export const formTokenOf = (hmac: Hmac, sessionId: string, path: string): string =>
  hmac('csrf', 'account', sessionId, path).toString('base64url')

/** What a page says went well, in its address: signed, so that a link cannot make it say anything. */
export const noticeTokenOf = (hmac: Hmac, sessionId: string, path: string, notice: string): string =>
  hmac('csrf', 'account-notice', sessionId, path, notice).subarray(0, 12).toString('base64url')

export const isEqual = (one: string, other: string): boolean => {
  const [presented, expected] = [Buffer.from(one), Buffer.from(other)]
  return presented.length === expected.length && timingSafeEqual(presented, expected)
}
