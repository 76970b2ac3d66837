import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBrowser } from '../../support/browser.ts'
import { type FormValues, formOf } from '../../support/issuer.ts'
import { startOurs } from './ours.ts'
import { pkcePair, unsigned } from './relying-party.ts'
import { redirectUri, type Target } from './target.ts'
import { startTheirs } from './theirs.ts'

/**
 * The same authorization requests to oidc-provider, which is certified, and to ours: what the person or the client gets
 * to see. Where the two differ, the row says how and why.
 */

let ours: Target
let theirs: Target
beforeAll(async () => {
  ours = await startOurs()
  theirs = await startTheirs()
})
afterAll(async () => {
  await theirs.close()
  await ours.close()
})

/** `sign-in`, `page <status>`, or what the client is told. */
const outcome = async ({ issuer, clients, answers }: Target, parameters: FormValues): Promise<string> => {
  const sent = {
    ...{ client_id: clients.basic.id, redirect_uri: redirectUri, response_type: 'code', scope: 'openid' },
    ...{ state: 'kept', ...parameters },
  }
  const endpoint = `${new URL(issuer).origin}/oidc/auth`
  const { location, status, forms } = await createBrowser(issuer).get(`${endpoint}?${formOf(sent)}`)
  if (location === undefined)
    return forms.some(({ names }) => names.includes(answers[0]!.field)) ? 'sign-in' : `page ${status}`
  if (!location.startsWith(redirectUri)) return `sent to ${location}`
  const { search, hash } = new URL(location)
  const told = new URLSearchParams(search || hash.slice(1))
  return [
    hash === '' ? 'error' : 'in the fragment: error',
    told.get('error'),
    ...(told.get('state') === sent.state ? [] : ['without state']),
    ...(told.get('iss') === issuer ? [] : ['without iss']),
  ].join(' ')
}

interface Difference {
  because: string
  ours: string
  theirs: string
}

const oneAnswer =
  'There is one answer for a parameter that is left out and for one that is wrong: who asks is not known.'
const differs = (because: string, own: string, other: string): Difference => ({ because, ours: own, theirs: other })

const { challenge } = pkcePair()
const s256 = { code_challenge: challenge, code_challenge_method: 'S256' }
const invalid = 'error invalid_request'
const unsupportedType = 'error unsupported_response_type'

const table: Record<string, [parameters: FormValues, difference?: Difference]> = {
  'what is right': [{}],
  'no client': [{ client_id: undefined }],
  'an unknown client': [{ client_id: 'nobody' }],
  'two clients': [{ client_id: ['a', 'b'] }],

  'no redirect URI': [{ redirect_uri: undefined }, differs(oneAnswer, 'page 400', 'sign-in')],
  'an empty redirect URI': [{ redirect_uri: '' }, differs(oneAnswer, 'page 400', 'sign-in')],
  'two redirect URIs': [
    { redirect_uri: [redirectUri, redirectUri] },
    differs('Which of the two is meant is not known, so neither is used.', 'page 400', invalid),
  ],
  'a redirect URI with another letter case': [{ redirect_uri: 'https://CLIENT.example.test/cb' }],
  'a redirect URI with a slash at its end': [{ redirect_uri: `${redirectUri}/` }],
  'a redirect URI with a query': [{ redirect_uri: `${redirectUri}?a=b` }],
  'a redirect URI with a fragment': [{ redirect_uri: `${redirectUri}#a` }],
  'a redirect URI with its port': [{ redirect_uri: 'https://client.example.test:443/cb' }],
  'a redirect URI with dots': [{ redirect_uri: 'https://client.example.test/x/../cb' }],
  'a redirect URI with a user': [{ redirect_uri: 'https://client.example.test@evil.example.test/cb' }],

  'two states': [{ state: ['a', 'b'] }],
  'an empty state': [{ state: '' }],
  'a long state': [{ state: 'x'.repeat(3_000) }],
  'a state that is too long': [
    { state: 'x'.repeat(6_000) },
    differs('More than 4 kB is for no redirect.', `${invalid} without state`, 'sign-in'),
  ],
  'a state of many scripts': [{ state: 'ä€😀' }],
  'a state with NUL': [{ state: 'a\0b' }, differs('What PostgreSQL cannot store is no text.', 'page 400', 'sign-in')],
  'two nonces': [{ nonce: ['a', 'b'] }],
  'a nonce that is too long': [
    { nonce: 'x'.repeat(3_000) },
    differs('More than 1 kB is for no token.', invalid, 'sign-in'),
  ],
  'a parameter that nobody knows': [{ extra: 'a' }],
  'the same twice': [{ extra: ['a', 'b'] }, differs('RFC 6749 §3.1: no parameter more than once.', invalid, 'sign-in')],

  'scope twice': [{ scope: ['openid', 'openid'] }],
  'no scope': [{ scope: undefined }],
  'an empty scope': [{ scope: '' }],
  'no openid': [{ scope: 'profile' }],
  'a scope that does not exist': [{ scope: 'openid nothing' }],
  'a scope that is no name': [{ scope: 'openid "x' }],
  'a resource that is unknown': [{ resource: 'https://unknown.example.test' }],
  'a resource that is no URI': [{ resource: 'x' }],

  'response_type empty': [{ response_type: '' }],
  'response_type twice': [{ response_type: ['code', 'code'] }],
  'response_type nonsense': [{ response_type: 'x' }],
  ...Object.fromEntries(
    [
      ['token', 'in the fragment: error unsupported_response_type'],
      ['id_token', 'in the fragment: error invalid_request'],
      ['code id_token', 'in the fragment: error invalid_request'],
      ['none', invalid],
    ].map(([type = '', other = '']): [string, [FormValues, Difference]] => [
      `response_type ${type}`,
      [
        { response_type: type },
        differs('There is one response type; of others not even the default mode is known.', unsupportedType, other),
      ],
    ]),
  ),
  ...Object.fromEntries(
    ['nonsense', 'jwt'].map((mode): [string, [FormValues, Difference]] => [
      `response_mode ${mode}`,
      [
        { response_mode: mode },
        differs('unsupported_response_mode is in no standard.', invalid, 'error unsupported_response_mode'),
      ],
    ]),
  ),

  'prompt none': [{ prompt: 'none' }],
  'prompt none with another': [{ prompt: 'none login' }],
  'prompt nonsense': [{ prompt: 'x' }],
  'prompt login with nonsense': [{ prompt: 'login x' }],
  'prompt empty': [{ prompt: '' }],
  'prompt login consent': [{ prompt: 'login consent' }],
  'prompt select_account': [
    { prompt: 'select_account' },
    differs('OpenID Connect Core §3.1.2.1 has it; theirs needs a page of its own for it.', 'sign-in', invalid),
  ],
  'prompt create': [
    { prompt: 'create' },
    differs('Initiating User Registration via OpenID Connect 1.0 has it.', 'sign-in', invalid),
  ],
  'max_age 0': [{ max_age: '0' }],
  'max_age empty': [{ max_age: '' }],
  'max_age below 0': [{ max_age: '-1' }],
  'max_age that is no number': [{ max_age: 'x' }],
  'max_age that is not whole': [{ max_age: '1.5' }],
  'max_age that is too large': [{ max_age: '1'.repeat(400) }],
  'an ID token hint that is none': [{ id_token_hint: 'x' }],
  'an ID token hint that nobody signed': [{ id_token_hint: unsigned({ iss: 'x', sub: 'y' }) }],
  'an empty ID token hint': [{ id_token_hint: '' }],
  'claims that are no JSON': [
    { claims: 'x' },
    differs('The parameter is not supported, so it is not read.', 'sign-in', invalid),
  ],

  PKCE: [s256],
  'PKCE without a method': [{ code_challenge: challenge }],
  'PKCE without a challenge': [{ code_challenge_method: 'S256' }],
  'PKCE by plain': [{ ...s256, code_challenge_method: 'plain' }],
  'PKCE with a short challenge': [{ ...s256, code_challenge: 'abc' }],
  'PKCE with an empty challenge': [{ ...s256, code_challenge: '' }],

  registration: [{ registration: '{}' }],
  'a request object': [{ request: unsigned({}) }],
  'an empty request object': [{ request: '' }],
  'a request at an address': [{ request_uri: 'https://client.example.test/request.jwt' }],
  'a request that was never sent ahead': [
    { request_uri: 'urn:ietf:params:oauth:request_uri:x' },
    differs(
      'Theirs has no requests sent ahead here; that of ours belongs to no client any more.',
      'page 400',
      'error request_uri_not_supported',
    ),
  ],
  'both of them': [{ request: unsigned({}), request_uri: 'https://client.example.test/request.jwt' }],
}

test.each(Object.entries(table))('%s', async (_, [parameters, difference]) => {
  const [own, other] = [await outcome(ours, parameters), await outcome(theirs, parameters)]
  const wanted = difference ?? { ours: other, theirs: other }
  expect({ ours: own, theirs: other }).toEqual({ ours: wanted.ours, theirs: wanted.theirs })
})
