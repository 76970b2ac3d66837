import { expect } from 'vitest'
import { type Answer, type FormValues, formOf, request } from '../../support/issuer.ts'
import { claimsOfScope } from './person.ts'
import {
  createRelyingParty,
  discover,
  type Outcome,
  pkcePair,
  type RelyingParty,
  type SignIn,
  unsigned,
} from './relying-party.ts'
import { type ConformanceModule, type ConformanceModules, type Requires, redirectUri, type Target } from './target.ts'

type Scope = keyof typeof claimsOfScope
const allScopes = Object.keys(claimsOfScope) as Scope[]
const now = () => Math.floor(Date.now() / 1000)

/** OpenID Connect Core §3.1.2.6: what a request without any page can end in. */
const errorsThatNeedPages = ['login_required', 'interaction_required', 'consent_required', 'account_selection_required']

/** RFC 6749 §4.1.2.1, §5.2: neither quotes nor backslashes. */
const describesError = (description: unknown) => {
  if (description !== undefined && description !== null) expect(description).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/)
}

/** OpenID Connect Core §3.1.2.6, RFC 9207 §2. */
const requireError = (requires: Requires, callback: URLSearchParams | undefined, issuer: string) => {
  requires('state and iss come with the error', () => {
    expect(callback?.get('state')).toBe('kept')
    expect(callback?.get('iss')).toBe(issuer)
  })
  requires('the error has a proper description, and no code beside it', () => {
    describesError(callback?.get('error_description'))
    expect(callback?.has('code')).toBe(false)
  })
}

/** OpenID Connect Core §3.1.3.7. */
const requireIdToken = (requires: Requires, { claims, nonce }: SignIn, { client }: RelyingParty, issuer: string) => {
  requires('the ID token is for this client alone', () => expect(claims).toMatchObject({ iss: issuer, aud: client.id }))
  requires('the ID token is of now', () => {
    expect(Math.abs(claims.iat! - now())).toBeLessThanOrEqual(60)
    expect(claims.exp).toBeGreaterThan(now())
  })
  requires('the ID token repeats the nonce', () => expect(claims['nonce']).toBe(nonce))
  requires('sub is at most 255 ASCII characters', () => expect(claims.sub).toMatch(/^[\x21-\x7e]{1,255}$/))
}

const requireUserinfo = (requires: Requires, { status, headers, body }: Answer, { claims }: SignIn) => {
  requires('userinfo is JSON', () => {
    expect(status).toBe(200)
    expect(headers.get('content-type')).toMatch(/^application\/json/)
  })
  requires('userinfo is about the subject of the ID token', () => expect(body.sub).toBe(claims.sub))
}

/** The code flow with something in the request that must not stop it. */
const succeedsWith = (
  proves: string,
  parameters: FormValues | ((target: Target) => FormValues),
): ConformanceModule => ({
  proves,
  async run(target, requires) {
    const client = await createRelyingParty(target)
    const signIn = await client.signIn(typeof parameters === 'function' ? parameters(target) : parameters)
    requires('the person signs in, once', () => expect(signIn.asked).toEqual(['sign-in']))
    requireUserinfo(requires, await client.userinfo(signIn.tokens.access_token), signIn)
  },
})

/** The same browser twice, the second time with something that lets it pass at once. */
const samePersonAtOnce = (
  proves: string,
  parameters: (first: SignIn, target: Target) => FormValues,
): ConformanceModule => ({
  proves,
  async run(target, requires) {
    const client = await createRelyingParty(target)
    const first = await client.signIn({ max_age: '10000' })
    await target.age(2)
    const wanted = parameters(first, target)
    const second = await client.signIn(wanted)
    requires('no page is shown', () => expect(second.asked).toEqual([]))
    requires('the subject is the same', () => expect(second.claims.sub).toBe(first.claims.sub))
    requires('auth_time is that of the first time, and there after max_age', () => {
      if (wanted['max_age'] !== undefined || second.claims['auth_time'] !== undefined)
        expect(second.claims['auth_time']).toBe((first.claims['auth_time'] as number) - 2)
    })
  },
})

/** The same browser twice, the second time with something that makes the person sign in again. */
const samePersonAgain = (proves: string, parameters: FormValues): ConformanceModule => ({
  proves,
  async run(target, requires) {
    const client = await createRelyingParty(target)
    const first = await client.signIn({ max_age: '10000' })
    await target.age(2)
    const second = await client.signIn(parameters)
    requires('the person signs in again, once', () => expect(second.asked).toEqual(['sign-in']))
    requires('the subject is the same', () => expect(second.claims.sub).toBe(first.claims.sub))
    requires('auth_time is later, and recent', () => {
      expect(second.claims['auth_time']).toBeGreaterThan((first.claims['auth_time'] as number) - 2)
      expect(Math.abs((second.claims['auth_time'] as number) - now())).toBeLessThanOrEqual(60)
    })
  },
})

const claimsArrive = (scopes: readonly Scope[], differs: ConformanceModule['differs'] = {}): ConformanceModule => ({
  differs,
  proves: `userinfo has the claims of ${scopes.join(', ')} (OpenID Connect Core §5.4)`,
  async run(target, requires) {
    const client = await createRelyingParty(target)
    const signIn = await client.signIn({ scope: ['openid', ...scopes].join(' ') })
    const answer = await client.userinfo(signIn.tokens.access_token)
    requireUserinfo(requires, answer, signIn)
    for (const name of scopes.flatMap((scope) => claimsOfScope[scope]))
      requires(`${name} is the person's`, () => expect(answer.body[name]).toEqual(target.person[name]))
    const others = allScopes.filter((scope) => !scopes.includes(scope)).flatMap((scope) => claimsOfScope[scope])
    requires('no claims come that were not asked for', () =>
      expect(others.filter((name) => name in answer.body)).toEqual([]),
    )
  },
})

const digitsOnly = {
  ours: {
    "phone_number is the person's":
      'Digits without "+", as the Management API has them and SDKs expect them; §5.1 only recommends E.164.',
  },
}

/** What supports a parameter that changes the request, does so; what does not, says so. */
const isHandledOrRefused = (outcome: Outcome, error: string) => {
  const code = outcome.callback?.get('code')
  if (!code) expect(outcome.callback?.get('error')).toBe(error)
}

const requireInvalidGrant = (requires: Requires, requirement: string, { status, body }: Answer) =>
  requires(requirement, () => {
    expect(status).toBe(400)
    expect(body).toMatchObject({ error: 'invalid_grant' })
    describesError(body.error_description)
  })

const userinfoBy = (proves: string, send: (endpoint: string, token: string) => Promise<Answer>): ConformanceModule => ({
  proves,
  async run(target, requires) {
    const client = await createRelyingParty(target)
    const signIn = await client.signIn()
    requireUserinfo(requires, await send(client.discovery.userinfo_endpoint, signIn.tokens.access_token), signIn)
  },
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** The plan "Basic OP": the code flow of confidential clients. */
export const basicOp: ConformanceModules = {
  'oidcc-server': {
    proves: 'the code flow works, and every answer on its way says what it must',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const state = 'a state with: / ? & = + % and spaces'
      const signIn = await client.signIn({ state })
      const { callback, tokens, code } = signIn
      requires('state comes back as it was', () => expect(callback.get('state')).toBe(state))
      requires('iss names the issuer (RFC 9207)', () => expect(callback.get('iss')).toBe(target.issuer))
      requires('nothing else is in the answer', () =>
        expect([...callback.keys()].sort()).toEqual(['code', 'iss', 'state']),
      )
      requires('the code cannot be guessed', () => expect(code.length).toBeGreaterThanOrEqual(22))
      requires('the access token cannot be guessed', () =>
        expect(tokens.access_token.length).toBeGreaterThanOrEqual(22),
      )
      requires('the token is a bearer token', () => expect(tokens.token_type.toLowerCase()).toBe('bearer'))
      requires('expires_in is a positive number', () => expect(tokens.expires_in).toBeGreaterThan(0))
      requireIdToken(requires, signIn, client, target.issuer)
      requireUserinfo(requires, await client.userinfo(tokens.access_token), signIn)
    },
  },
  'oidcc-response-type-missing': {
    proves: 'a request without response_type is refused',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const { callback, page } = await client.authorize({ response_type: undefined, state: 'kept' })
      requires('it is refused, on a page or at the client', () => {
        if (callback) expect(callback.get('error')).toBe('invalid_request')
        else expect(page.status).toBe(400)
      })
      if (callback) requireError(requires, callback, target.issuer)
    },
  },
  'oidcc-idtoken-signature': {
    proves: 'ID tokens are signed as the client asked, with a published key that their header names',
    async run(target, requires) {
      for (const [name, alg] of [
        ['rs256', 'RS256'],
        ['es256', 'ES256'],
      ] as const) {
        const client = await createRelyingParty(target, target.clients[name])
        const { idToken } = await client.signIn()
        const { protectedHeader } = await client.verify(idToken)
        const { body } = await request(client.discovery.jwks_uri)
        const key = body.keys.filter(({ kid }: { kid: string }) => kid === protectedHeader.kid)
        requires(`${alg}: the algorithm is that of the client`, () => expect(protectedHeader.alg).toBe(alg))
        requires(`${alg}: the JWKS has one key of this kid`, () => expect(key).toMatchObject([{ use: 'sig' }]))
      }
    },
  },
  'oidcc-idtoken-unsigned': {
    proves: 'ID tokens are always signed: nobody can register for alg none',
    async run({ issuer }, requires) {
      const { body } = await discover(issuer)
      requires('discovery does not offer none', () =>
        expect(body.id_token_signing_alg_values_supported).not.toContain('none'),
      )
    },
  },
  'oidcc-userinfo-get': userinfoBy('userinfo answers a GET (OpenID Connect Core §5.3.1)', (endpoint, token) =>
    request(endpoint, { headers: bearer(token) }),
  ),
  'oidcc-userinfo-post-header': userinfoBy('userinfo answers a POST, token in the header', (endpoint, token) =>
    request(endpoint, { method: 'POST', headers: bearer(token) }),
  ),
  'oidcc-userinfo-post-body': userinfoBy(
    'userinfo answers a POST, token in the body (RFC 6750 §2.2)',
    (endpoint, token) => request(endpoint, { method: 'POST', body: formOf({ access_token: token }) }),
  ),
  'oidcc-ensure-request-without-nonce-succeeds-for-code-flow': {
    proves: 'nonce is optional in the code flow',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const signIn = await client.signIn({ nonce: undefined })
      requires('the ID token has no nonce', () => expect(signIn.claims).not.toHaveProperty('nonce'))
      requireUserinfo(requires, await client.userinfo(signIn.tokens.access_token), signIn)
    },
  },
  'oidcc-scope-profile': claimsArrive(['profile']),
  'oidcc-scope-email': claimsArrive(['email']),
  'oidcc-scope-address': claimsArrive(['address']),
  'oidcc-scope-phone': claimsArrive(['phone'], digitsOnly),
  'oidcc-scope-all': claimsArrive(allScopes, digitsOnly),
  'oidcc-ensure-other-scope-order-succeeds': succeedsWith('scopes have no order', { scope: 'email openid' }),
  'oidcc-display-page': succeedsWith('display=page is no error', { display: 'page' }),
  'oidcc-display-popup': succeedsWith('display=popup is no error', { display: 'popup' }),
  'oidcc-prompt-login': samePersonAgain('prompt=login asks somebody who is signed in', { prompt: 'login' }),
  'oidcc-prompt-none-not-logged-in': {
    proves: 'prompt=none shows no page to somebody who is not signed in',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const { callback, asked } = await client.authorize({ prompt: 'none', state: 'kept' })
      requires('no page is shown', () => expect(asked).toEqual([]))
      requires('the client is told why', () => expect(errorsThatNeedPages).toContain(callback?.get('error')))
      requireError(requires, callback, target.issuer)
    },
  },
  'oidcc-prompt-none-logged-in': samePersonAtOnce('prompt=none lets somebody pass who is signed in', () => ({
    prompt: 'none',
  })),
  'oidcc-max-age-1': samePersonAgain('whoever signed in longer than max_age ago signs in again', { max_age: '1' }),
  'oidcc-max-age-10000': samePersonAtOnce('whoever signed in within max_age does not sign in again', () => ({
    max_age: '10000',
  })),
  'oidcc-ensure-request-with-unknown-parameter-succeeds': succeedsWith('parameters that nobody knows are ignored', {
    extra: 'foobar',
  }),
  'oidcc-id-token-hint': samePersonAtOnce('prompt=none with the ID token of the person lets them pass', (first) => ({
    prompt: 'none',
    id_token_hint: first.idToken,
  })),
  'oidcc-login-hint': succeedsWith('login_hint is no error', ({ person }) => ({
    login_hint: person['email'] as string,
  })),
  'oidcc-ui-locales': succeedsWith('ui_locales is no error', { ui_locales: 'se' }),
  'oidcc-claims-locales': succeedsWith('claims_locales is no error', { claims_locales: 'se' }),
  'oidcc-ensure-request-with-acr-values-succeeds': succeedsWith('acr_values that cannot be reached are no error', {
    acr_values: '1 2',
  }),
  'oidcc-codereuse': {
    proves: 'a code is good once',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      requireInvalidGrant(requires, 'the code is not good twice', await client.redeem((await client.signIn()).code))
    },
  },
  'oidcc-codereuse-30seconds': {
    proves: 'a code that comes again after 30 s ends the access token that came of it (RFC 6749 §4.1.2)',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const { code, tokens } = await client.signIn()
      await target.age(30)
      const before = await client.userinfo(tokens.access_token)
      requires('the access token is good before', () => expect(before.status).toBe(200))
      requireInvalidGrant(requires, 'the code is not good twice', await client.redeem(code))
      const after = await client.userinfo(tokens.access_token)
      requires('the access token is not good after', () => expect(after.status).toBe(401))
    },
  },
  'oidcc-ensure-registered-redirect-uri': {
    proves: 'nobody is sent to an address that the client did not register',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const { location, page } = await client.authorize({ redirect_uri: `${redirectUri}/elsewhere` })
      requires('the browser stays, and sees an error', () => {
        expect(location).toBeUndefined()
        expect(page.status).toBe(400)
        expect(page.headers.get('content-type')).toMatch(/^text\/html/)
      })
    },
  },
  'oidcc-ensure-post-request-succeeds': {
    proves: 'an authorization request may be a POST (OpenID Connect Core §3.1.2.1)',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const sent = await client.browser.send(client.discovery.authorization_endpoint, {
        method: 'POST',
        body: formOf(client.authorizationRequest({ state: 'kept' })),
        headers: { origin: new URL(redirectUri).origin, 'sec-fetch-site': 'cross-site' },
      })
      const { callback } = await client.follow(sent.location ? await client.browser.get(sent.location) : sent)
      requires('a code comes', () => expect(callback?.get('code')).toEqual(expect.any(String)))
      requires('state comes back', () => expect(callback?.get('state')).toBe('kept'))
      const { status } = await client.redeem(callback?.get('code') ?? '')
      requires('the code is good', () => expect(status).toBe(200))
    },
  },
  'oidcc-server-client-secret-post': {
    proves: 'a client may send its secret in the body (client_secret_post)',
    async run(target, requires) {
      const client = await createRelyingParty(target, target.clients.post)
      const { callback } = await client.authorize()
      const { id, secret } = client.client
      const form = { grant_type: 'authorization_code', code: callback?.get('code') ?? '', redirect_uri: redirectUri }
      const { status, body } = await client.token({ ...form, client_id: id, client_secret: secret }, {})
      requires('tokens come', () => {
        expect(status).toBe(200)
        expect(body).toMatchObject({ access_token: expect.any(String), id_token: expect.any(String) })
      })
      await client.verify(body.id_token)
    },
  },
  'oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported': {
    proves: 'request_uri is either followed or refused as unsupported',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const outcome = await client.authorize({ request_uri: 'https://client.example.test/request.jwt' })
      requires('the answer says which', () => isHandledOrRefused(outcome, 'request_uri_not_supported'))
    },
  },
  'oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported': {
    proves: 'request is either read or refused as unsupported',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const claims = client.authorizationRequest({ iss: client.client.id, aud: target.issuer })
      const outcome = await client.authorize({ request: unsigned(claims) })
      requires('the answer says which', () => isHandledOrRefused(outcome, 'request_not_supported'))
    },
  },
  'oidcc-claims-essential': {
    proves: 'claims that are asked for by name do not stop the flow, and come where that is supported',
    differs: {
      ours: {
        'userinfo has the claim': 'Claims come by scope only, and discovery says so (claims_parameter_supported).',
      },
    },
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const signIn = await client.signIn({ claims: JSON.stringify({ userinfo: { name: { essential: true } } }) })
      const answer = await client.userinfo(signIn.tokens.access_token)
      requireUserinfo(requires, answer, signIn)
      requires('userinfo has the claim', () => expect(answer.body.name).toBe(target.person['name']))
    },
  },
  'oidcc-ensure-request-object-with-redirect-uri': {
    proves: 'a request object that is not read does not lead to an address that is not registered',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const claims = client.authorizationRequest({ iss: client.client.id, aud: target.issuer })
      const outcome = await client.authorize({
        redirect_uri: `${redirectUri}/elsewhere`,
        request: unsigned(claims),
      })
      requires('the browser stays, or the registered address is told', () => {
        if (outcome.location === undefined) expect(outcome.page.status).toBe(400)
        else isHandledOrRefused(outcome, 'request_not_supported')
      })
    },
  },
  'oidcc-refresh-token': {
    proves: 'a refresh token brings new tokens of the same person, to its own client only',
    async run(target, requires) {
      const offline = { scope: 'openid offline_access', prompt: 'consent' }
      const client = await createRelyingParty(target)
      const first = await client.signIn(offline)
      requires('a refresh token comes, of the characters of RFC 6749 §A.17', () =>
        expect(first.tokens.refresh_token).toMatch(/^[\x20-\x7e]+$/),
      )
      requires('discovery lists the grant', () =>
        expect(client.discovery.grant_types_supported).toContain('refresh_token'),
      )
      const { status, headers, body } = await client.token({
        grant_type: 'refresh_token',
        refresh_token: first.tokens.refresh_token,
      })
      requires('new tokens come', () => {
        expect(status).toBe(200)
        expect(headers.get('cache-control')).toMatch(/no-store/)
        expect(body.access_token).not.toBe(first.tokens.access_token)
      })
      const { claims } = first
      const { payload: refreshed } = await client.verify(body.id_token)
      requires('the new ID token is about the same (OpenID Connect Core §12.2)', () => {
        expect(refreshed).toMatchObject({ iss: claims.iss, sub: claims.sub, aud: claims.aud })
        expect(refreshed.iat).toBeGreaterThanOrEqual(claims.iat!)
        if ('auth_time' in refreshed) expect(refreshed['auth_time']).toBe(claims['auth_time'])
        if ('nonce' in refreshed) expect(refreshed['nonce']).toBe(first.nonce)
      })
      requireUserinfo(requires, await client.userinfo(body.access_token), first)

      const other = await createRelyingParty(target, target.clients.other)
      const refused = await other.token({
        grant_type: 'refresh_token',
        refresh_token: body.refresh_token ?? first.tokens.refresh_token,
      })
      requireInvalidGrant(requires, 'another client cannot use it', refused)
    },
  },
  'oidcc-ensure-request-with-valid-pkce-succeeds': {
    proves: 'PKCE works for a client that need not use it (RFC 7636)',
    async run(target, requires) {
      const client = await createRelyingParty(target)
      const { verifier, challenge } = pkcePair()
      const { callback } = await client.authorize({ code_challenge: challenge, code_challenge_method: 'S256' })
      const code = callback?.get('code') ?? ''
      requireInvalidGrant(requires, 'without the verifier the code is no good', await client.redeem(code))
      const { status } = await client.redeem(code, { code_verifier: verifier })
      requires('with the verifier it is', () => expect(status).toBe(200))
    },
  },
}
