import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import {
  discover,
  errorIn,
  json,
  type Metadata,
  oauthError,
  type TokenAnswer,
  tokenAnswer,
  verifyIdToken,
} from '../../testing/application.ts'
import type { Browser } from '../../testing/browser.ts'
import { SignInFailed } from '../../testing/step.ts'
import type { StoredLogin } from './stored-logins.ts'

/** This machine as an application: it signs a person in who has a browser elsewhere (RFC 8628), and gets new tokens. */

const deviceAnswer = z.object({
  device_code: z.string(),
  user_code: z.string().max(64),
  verification_uri: z.url(),
  verification_uri_complete: z.url().optional(),
  expires_in: z.number(),
  interval: z.number().default(5),
})
export type DeviceAnswer = z.output<typeof deviceAnswer>

export interface DeviceOptions {
  issuer: URL
  clientId: string
  scope: string
  resources: readonly string[]
  /** Tells the person where to enter which code. */
  tell(asked: DeviceAnswer): void
  browser: Browser
  now?: () => number
}

/** What a client must wait longer each time it is told so (RFC 8628 §3.5), in seconds. */
const slowDownSeconds = 5
/** ms before its expiry in which an access token is not handed out any more. */
const reserve = 60_000

const slowDown = 'slow_down'
const pending = 'authorization_pending'

export const signInOnDevice = async (options: DeviceOptions): Promise<StoredLogin> => {
  const { issuer, clientId, scope, resources, tell, browser } = options
  const metadata = await discover(options)
  const { device_authorization_endpoint: endpoint } = metadata
  if (endpoint === undefined) throw new SignInFailed(`${metadata.issuer} has no sign-in for devices (RFC 8628).`)
  const form = new URLSearchParams([
    ['client_id', clientId],
    ['scope', scope],
    ...resources.map((resource): [string, string] => ['resource', resource]),
  ])
  const answer = await browser.call(new URL(endpoint), { form })
  const asked = deviceAnswer.safeParse(json(answer))
  if (answer.status !== 200 || !asked.success)
    throw new SignInFailed(`The issuer answered ${answer.status}.${errorIn(answer)}`)
  // What a person is told to open is the issuer's, whatever stands in the answer.
  if (new URL(asked.data.verification_uri).origin !== issuer.origin)
    throw new SignInFailed('The issuer sends people to another host than its own.')
  tell(asked.data)
  const tokens = await poll(options, metadata, asked.data)
  const idToken =
    tokens.id_token === undefined ? undefined : await verifyIdToken(options, metadata, tokens.id_token, undefined)
  const login = {
    issuer: metadata.issuer,
    clientId,
    resources: [...resources],
    subject: idToken?.sub,
    accessTokens: {},
  }
  return kept(options, login, resources[0], tokens)
}

const poll = async (
  { clientId, resources, browser, now = Date.now }: DeviceOptions,
  { token_endpoint }: Metadata,
  asked: DeviceAnswer,
): Promise<TokenAnswer> => {
  const until = now() + asked.expires_in * 1_000
  let wait = asked.interval
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: asked.device_code,
    client_id: clientId,
    ...(resources[0] !== undefined && { resource: resources[0] }),
  })
  while (now() < until) {
    await delay(wait * 1_000)
    const answer = await browser.call(new URL(token_endpoint), { form })
    const tokens = tokenAnswer.safeParse(json(answer))
    if (answer.status === 200 && tokens.success) return tokens.data
    const { data } = oauthError.safeParse(json(answer))
    if (data?.error === slowDown || answer.status >= 500) wait += slowDownSeconds
    else if (data?.error !== pending) throw new SignInFailed(`The issuer answered ${answer.status}.${errorIn(answer)}`)
  }
  throw new SignInFailed('Nobody entered the code in time.')
}

/** An access token for a resource, a new one where the stored one is nearly over; `login` as it is then. */
export const accessTokenOf = async (
  login: StoredLogin,
  resource: string | undefined,
  { browser, now = Date.now }: { browser: Browser; now?: () => number },
): Promise<{ token: string; login: StoredLogin }> => {
  const stored = login.accessTokens[resource ?? '']
  if (stored && stored.expiresAt - now() > reserve) return { token: stored.token, login }
  if (login.refreshToken === undefined) throw new SignInFailed('The sign-in is over: it was for one token only.')
  const metadata = await discover({ issuer: new URL(login.issuer), browser })
  const form = new URLSearchParams({
    grant_type: 'refresh_token',
    refresh_token: login.refreshToken,
    client_id: login.clientId,
    ...(resource !== undefined && { resource }),
  })
  const answer = await browser.call(new URL(metadata.token_endpoint), { form })
  const tokens = tokenAnswer.safeParse(json(answer))
  if (answer.status !== 200 || !tokens.success)
    throw new SignInFailed(`The issuer answered ${answer.status}.${errorIn(answer)}`)
  return { token: tokens.data.access_token, login: kept({ now }, login, resource, tokens.data) }
}

/** RFC 7009: what was given is good no more. Throws `SignInFailed` when the issuer does not say so. */
export const giveUp = async ({ issuer, clientId, refreshToken }: StoredLogin, browser: Browser): Promise<void> => {
  const { revocation_endpoint: endpoint } = await discover({ issuer: new URL(issuer), browser })
  if (endpoint === undefined || refreshToken === undefined) return
  const form = new URLSearchParams({ token: refreshToken, token_type_hint: 'refresh_token', client_id: clientId })
  const answer = await browser.call(new URL(endpoint), { form })
  if (answer.status !== 200) throw new SignInFailed(`The issuer answered ${answer.status}.${errorIn(answer)}`)
}

const kept = (
  { now = Date.now }: { now?: (() => number) | undefined },
  login: StoredLogin,
  resource: string | undefined,
  { access_token: token, expires_in: seconds = 0, refresh_token: refreshToken }: TokenAnswer,
): StoredLogin => ({
  ...login,
  refreshToken: refreshToken ?? login.refreshToken,
  accessTokens: { ...login.accessTokens, [resource ?? '']: { token, expiresAt: now() + seconds * 1_000 } },
})
