import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { until } from '../../support/until.ts'
import { createRelyingParty, discover } from './relying-party.ts'
import { type ConformanceModules, postLogoutRedirectUri } from './target.ts'

/** The plan "Back-Channel Logout OP" (OpenID Connect Back-Channel Logout 1.0). */
export const backChannelLogout: ConformanceModules = {
  'oidcc-backchannel-logout-discovery-endpoint-verification': {
    proves: 'discovery says that applications are told, and of which session (§2.1)',
    async run({ issuer }, requires) {
      const { body } = await discover(issuer)
      requires('backchannel_logout_supported', () => expect(body.backchannel_logout_supported).toBe(true))
      requires('backchannel_logout_session_supported', () =>
        expect(body.backchannel_logout_session_supported).toBe(true),
      )
      requires('end_session_endpoint', () => expect(body.end_session_endpoint).toEqual(expect.any(String)))
    },
  },
  'oidcc-backchannel-rp-initiated-logout': {
    proves: 'who signs out at one application is told to it, with a token that is valid and of this session (§2.4)',
    async run(target, requires) {
      const client = await createRelyingParty(target, target.clients.told)
      const { idToken, claims } = await client.signIn()
      const state = randomBytes(32).toString('base64url')
      const { location } = await client.endSession({
        ...{ id_token_hint: idToken, post_logout_redirect_uri: postLogoutRedirectUri, state },
      })
      requires('the browser comes back with the state', () =>
        expect(location).toBe(`${postLogoutRedirectUri}?state=${state}`),
      )
      const { token } = await until(() => {
        const received = target.logouts.find((one) => one.claims['sub'] === claims.sub)
        if (received === undefined) throw new Error('no logout token has come yet')
        return received
      })
      // Signature, issuer and audience.
      const { payload, protectedHeader } = await client.verify(token)
      requires('the type says what it is', () => expect(protectedHeader.typ).toBe('logout+jwt'))
      requires('it is signed as ID tokens are', () => expect(protectedHeader.alg).not.toBe('none'))
      requires('iat, exp and jti are there', () =>
        expect(payload).toMatchObject({ iat: expect.any(Number), exp: expect.any(Number), jti: expect.any(String) }),
      )
      requires('events name the logout', () =>
        expect(payload['events']).toEqual({ 'http://schemas.openid.net/event/backchannel-logout': {} }),
      )
      requires('sub and sid are those of the ID token', () =>
        expect([payload.sub, payload['sid']]).toEqual([claims.sub, claims['sid']]),
      )
      requires('there is no nonce', () => expect(payload).not.toHaveProperty('nonce'))
      const { callback } = await client.authorize({ prompt: 'none' })
      requires('afterwards nobody is signed in', () => expect(callback?.get('error')).toBe('login_required'))
    },
  },
}
