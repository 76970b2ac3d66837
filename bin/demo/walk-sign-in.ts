import { setTimeout as pause } from 'node:timers/promises'
import { request } from 'undici'
import { z } from 'zod'
import { Secret } from '../../platform/secret.ts'
import { createBrowser, hopLine } from '../../testing/browser.ts'
import { SignInFailed, signIn } from '../../testing/sign-in.ts'
import type { DemoData, DemoFile } from './demo-file.ts'
import { basic } from './management-client.ts'
import { type Narrator, UnexpectedAnswer } from './narrator.ts'

/** How long the gateway may go on with a token of a session that has ended, in ms; more than a busy machine needs. */
const revocationPatienceMs = 10_000

/** A person signs in over the pages of the issuer, reads orders through the gateway, and signs out. */
export const walkSignIn = async (demo: DemoFile & { data: DemoData }, narrator: Narrator): Promise<void> => {
  const { issuerUrl, gatewayUrl, webUrl } = demo
  const { customer, webApplication, ordersResource } = demo.data
  const { call, say, step } = narrator
  const browser = createBrowser({ onHop: (hop) => say(hopLine(hop)) })

  step('The customer signs in to the web application, over the pages of the issuer.')
  const { tokens, idToken, accessToken } = await signIn({
    issuer: new URL(`${issuerUrl}/oidc`),
    clientId: webApplication.clientId,
    clientSecret: new Secret(webApplication.clientSecret),
    redirectUri: `${webUrl}/callback`,
    user: customer.username,
    password: new Secret(customer.password),
    scope: 'openid profile read:orders',
    resources: [ordersResource],
    parameters: {},
    consent: false,
    browser,
  }).catch((error: unknown) => {
    throw error instanceof SignInFailed ? new UnexpectedAnswer(error.message) : error
  })
  say(`the ID token says ${JSON.stringify(idToken, null, 2)}`)
  say(`the access token says ${JSON.stringify(accessToken, null, 2)}`)
  if (idToken?.sub !== customer.id || accessToken?.sub !== customer.id)
    throw new UnexpectedAnswer('The tokens are not about the customer.')

  step('The web application reads the orders of the customer through the gateway.')
  const orders = {
    method: 'GET',
    url: `${gatewayUrl}/orders`,
    headers: { authorization: `Bearer ${tokens.access_token}` },
  }
  const received = z.object({ headers: z.object({ 'x-auth-sub': z.literal(customer.id) }) })
  await call(orders, { status: 200, body: z.object({ received }) })

  step('The customer signs out: the application sends the browser to the issuer, with its ID token as a hint.')
  const logout = new URL(`${issuerUrl}/oidc/session/end`)
  logout.searchParams.set('id_token_hint', tokens.id_token ?? '')
  logout.searchParams.set('post_logout_redirect_uri', `${webUrl}/`)
  const { location } = await browser.open(logout)
  if (location?.href !== `${webUrl}/`) throw new UnexpectedAnswer('Signing out does not lead back to the application.')

  step('The gateway takes the access token no longer, although it has not expired.')
  const since = performance.now()
  while ((await statusOf(orders)) === 200 && performance.now() - since < revocationPatienceMs) await pause(20)
  say(`(after ${Math.round(performance.now() - since)} ms)`)
  await call(orders, { status: 401, challenge: /error="invalid_token"/, body: z.object({ code: z.string() }) })

  step('The refresh token neither.')
  const form = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token ?? '' }
  await call(
    { method: 'POST', url: `${issuerUrl}/oidc/token`, headers: { authorization: basic(webApplication) }, form },
    { status: 400, body: z.object({ error: z.literal('invalid_grant'), reason: z.literal('session_ended') }) },
  )
}

const statusOf = async ({ url, headers }: { url: string; headers: Record<string, string> }): Promise<number> => {
  const { statusCode, body } = await request(url, { headers })
  await body.dump()
  return statusCode
}
