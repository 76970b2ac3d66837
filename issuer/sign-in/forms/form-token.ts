import { timingSafeEqual } from 'node:crypto'
import type { Hmac } from '../../base/hmac-keys-store.ts'
import type { StepName } from '../../interaction/step.ts'

/**
 * The CSRF value of a form: it says which page of which interaction it stands on and whom the page was about, and only
 * the browser that the page was made for can send it back.
 */
export interface FormToken {
  page: StepName
  /** Who, or which session, the page was about. Empty: nobody. */
  subject: string
}

/** Where a form belongs. `browser` is the digest of the browser's cookie. */
interface FormPlace {
  browser: Buffer
  interactionId: string
}

const macOf = (hmac: Hmac, { browser, interactionId }: FormPlace, { page, subject }: FormToken): Buffer =>
  hmac('csrf', browser.toString('hex'), interactionId, page, subject)

export const formTokenOf = (hmac: Hmac, place: FormPlace, token: FormToken): string =>
  [token.page, token.subject, macOf(hmac, place, token).toString('base64url')].join('.')

/** Undefined when it is not one of ours, or belongs elsewhere. */
export const readFormToken = (hmac: Hmac, place: FormPlace, sent: string | undefined): FormToken | undefined => {
  const [pageName, subject, mac, ...rest] = (sent ?? '').split('.')
  if (pageName === undefined || subject === undefined || mac === undefined || rest.length > 0) return undefined
  // What the value below proves.
  const page = pageName as StepName
  const expected = macOf(hmac, place, { page, subject })
  const given = Buffer.from(mac, 'base64url')
  return given.length === expected.length && timingSafeEqual(given, expected) ? { page, subject } : undefined
}
