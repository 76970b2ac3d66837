import { randomBytes } from 'node:crypto'
import { generateKeyPair, SignJWT } from 'jose'
import { expect } from 'vitest'
import type { FormValues } from '../../support/issuer.ts'
import { createRelyingParty, discover, type RelyingParty, type SignIn, unsigned } from './relying-party.ts'
import { type ConformanceModule, type ConformanceModules, postLogoutRedirectUri, type Requires } from './target.ts'

/** Long, so that something would cut it. */
const longState = () => randomBytes(96).toString('base64url')

const sessionIsOver = async (requires: Requires, client: RelyingParty) => {
  const { callback } = await client.authorize({ prompt: 'none' })
  requires('afterwards nobody is signed in', () => expect(callback?.get('error')).toBe('login_required'))
}

/** Sends a browser with a session to the logout endpoint; it comes back to the client. */
const leadsBack = (
  proves: string,
  parameters: (signIn: SignIn) => FormValues,
  wanted: (parameters: FormValues) => string,
): ConformanceModule => ({
  proves,
  async run(target, requires) {
    const client = await createRelyingParty(target)
    const sent = parameters(await client.signIn())
    const { location } = await client.endSession(sent)
    requires('the browser comes to the registered address', () => expect(location).toBe(wanted(sent)))
    await sessionIsOver(requires, client)
  },
})

/** What cannot be trusted does not lead back; whether the person is asked is left to the provider. */
const doesNotLeadBack = (
  proves: string,
  parameters: (signIn: SignIn) => FormValues | Promise<FormValues>,
): ConformanceModule => ({
  proves,
  async run(target, requires) {
    const client = await createRelyingParty(target)
    const { location, page, asked } = await client.endSession(await parameters(await client.signIn()))
    requires('the browser stays', () => expect(location).toBeUndefined())
    requires('there is an error, or the person is asked', () =>
      expect(page.status === 400 || asked.includes('logout')).toBe(true),
    )
  },
})

/** Without an address the provider says itself that the person is signed out. */
const endsAtProvider = (proves: string, parameters: (signIn: SignIn) => FormValues): ConformanceModule => ({
  proves,
  async run(target, requires) {
    const client = await createRelyingParty(target)
    const { location, page } = await client.endSession(parameters(await client.signIn()))
    requires('the browser stays, and a page says so', () => {
      expect(location).toBeUndefined()
      expect(page.status).toBe(200)
      expect(page.text).toContain(target.signedOut)
    })
    await sessionIsOver(requires, client)
  },
})

const back = { post_logout_redirect_uri: postLogoutRedirectUri }

/** Of a key that the provider does not know, under the name of one that it does. */
const signedByStranger = async ({ claims, idToken }: SignIn) => {
  const header = JSON.parse(Buffer.from(idToken.split('.')[0]!, 'base64url').toString())
  const { privateKey } = await generateKeyPair(header.alg)
  return new SignJWT(claims).setProtectedHeader(header).sign(privateKey)
}

/** The plan "RP-Initiated Logout OP" (OpenID Connect RP-Initiated Logout 1.0). */
export const rpInitiatedLogout: ConformanceModules = {
  'oidcc-rp-initiated-logout-discovery-endpoint-verification': {
    proves: 'discovery names the logout endpoint (§2.1)',
    async run({ issuer }, requires) {
      const { body } = await discover(issuer)
      requires('end_session_endpoint is an address of the issuer', () =>
        expect(body.end_session_endpoint).toMatch(new RegExp(`^${new URL(issuer).origin}/`)),
      )
    },
  },
  'oidcc-rp-initiated-logout': leadsBack(
    'with ID token, address and state the person is signed out and comes back with the state',
    ({ idToken }) => ({ id_token_hint: idToken, state: longState(), ...back }),
    ({ state }) => `${postLogoutRedirectUri}?state=${state}`,
  ),
  'oidcc-rp-initiated-logout-bad-post-logout-redirect-uri': doesNotLeadBack(
    'nobody is sent to an address that the client did not register',
    ({ idToken }) => ({
      id_token_hint: idToken,
      state: longState(),
      post_logout_redirect_uri: `${postLogoutRedirectUri}/elsewhere`,
    }),
  ),
  'oidcc-rp-initiated-logout-modified-id-token-hint': doesNotLeadBack(
    'an ID token without signature proves nothing',
    ({ claims }) => ({ id_token_hint: unsigned(claims), state: longState(), ...back }),
  ),
  'oidcc-rp-initiated-logout-no-id-token-hint': doesNotLeadBack('an address alone does not say whose it is', () => ({
    state: longState(),
    ...back,
  })),
  'oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri': doesNotLeadBack(
    'a registered address with a query that was not registered is another address',
    ({ idToken }) => ({
      id_token_hint: idToken,
      state: longState(),
      post_logout_redirect_uri: `${postLogoutRedirectUri}?foo=bar`,
    }),
  ),
  'oidcc-rp-initiated-logout-bad-id-token-hint': doesNotLeadBack(
    'an ID token that somebody else signed proves nothing',
    async (signIn) => ({ id_token_hint: await signedByStranger(signIn), state: longState(), ...back }),
  ),
  'oidcc-rp-initiated-logout-no-params': endsAtProvider(
    'without any parameter the person is asked, and signed out',
    () => ({}),
  ),
  'oidcc-rp-initiated-logout-no-post-logout-redirect-uri': endsAtProvider(
    'without an address the person stays at the provider',
    ({ idToken }) => ({ id_token_hint: idToken, state: longState() }),
  ),
  'oidcc-rp-initiated-logout-no-state': leadsBack(
    'without state nothing is added to the address',
    ({ idToken }) => ({ id_token_hint: idToken, ...back }),
    () => postLogoutRedirectUri,
  ),
  'oidcc-rp-initiated-logout-only-state': endsAtProvider('state alone leads nowhere', () => ({ state: longState() })),
}
