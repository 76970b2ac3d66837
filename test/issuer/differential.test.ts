import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AssertionOptions, inSeconds, type KeyClient, registerKeyClient } from '../support/client-keys.ts'
import {
  type Answer,
  basic,
  type FormValues,
  formOf,
  request,
  startTestIssuer,
  type TestIssuer,
} from '../support/issuer.ts'
import type { TestApplication } from '../support/issuer-data.ts'
import { type ReferenceIssuer, startReferenceIssuer } from '../support/oidc-provider.ts'

/**
 * The same requests to oidc-provider, a certified implementation, and to ours. What an answer says is a list of facts;
 * every fact that only one of the two says must be explained in the row of its request, and every explanation must
 * still be needed.
 */

const orders = 'https://api.example.test/orders'
let ours: TestIssuer
let theirs: ReferenceIssuer
let machine: TestApplication
let web: TestApplication
let page: TestApplication
let signer: KeyClient
beforeAll(async () => {
  ours = await startTestIssuer({ config: { rateLimits: { failedAuthentications: 100_000 } } })
  await ours.createResource({ indicator: orders, scopes: ['read:orders', 'write:orders'] })
  machine = await ours.createApplication({ type: 'MachineToMachine' })
  web = await ours.createApplication({ type: 'Traditional' })
  page = await ours.createApplication({ type: 'SPA' })
  signer = await registerKeyClient(ours)
  for (const client of [machine, signer]) await ours.grantApplication(client, orders, ['read:orders'])

  const machineMetadata = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }
  const codeMetadata = { grant_types: ['authorization_code'], redirect_uris: ['https://client.example.test/cb'] }
  theirs = await startReferenceIssuer({
    resources: { [orders]: ['read:orders', 'write:orders'] },
    granted: ['read:orders'],
    clients: [
      { client_id: machine.id, client_secret: machine.secret, ...machineMetadata },
      { client_id: web.id, client_secret: web.secret, ...codeMetadata },
      { client_id: page.id, token_endpoint_auth_method: 'none', ...codeMetadata },
      {
        client_id: signer.id,
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
        jwks: { keys: [signer.jwk] },
        ...machineMetadata,
      },
    ],
  })
})
afterAll(async () => {
  await theirs.close()
  await ours.close()
})

/** One of the two, as a request sees it. */
interface Target {
  url: string
  issuer: string
}

type Send = (target: Target) => Promise<Answer>

/** Facts by which the two differ: `+` only ours, `-` only theirs. */
type Differences = readonly (readonly [because: string, ...facts: string[]])[]

const factsOf = ({ status, headers, body }: Answer): string[] => {
  const members = typeof body === 'object' && body !== null ? Object.keys(body) : []
  const challenge = headers.get('www-authenticate')?.split(' ', 1)[0]
  return [
    `status ${status}`,
    ...(body?.error ? [`error ${body.error}`] : []),
    ...(typeof body?.active === 'boolean' ? [`active ${body.active}`] : []),
    ...(typeof body?.scope === 'string' ? [`scope "${body.scope}"`] : []),
    ...(challenge ? [`challenge ${challenge}`] : []),
    ...(headers.get('cache-control')?.includes('no-store') ? ['no-store'] : []),
    ...members.map((name) => `member ${name}`),
  ]
}

const only = (sign: string, facts: readonly string[], others: readonly string[]) =>
  facts.filter((fact) => !others.includes(fact)).map((fact) => `${sign} ${fact}`)

const differences = async (send: Send): Promise<string[]> => {
  const [own, other] = [factsOf(await send(ours)), factsOf(await send(theirs))]
  // Every error of ours has these two for the SDKs that read them.
  const sdk = own.some((fact) => fact.startsWith('error ')) ? ['member code', 'member message'] : []
  return [
    ...only(
      '+',
      own.filter((fact) => !sdk.includes(fact)),
      other,
    ),
    ...only('-', other, own),
  ].toSorted()
}

const good = { grant_type: 'client_credentials', resource: orders, scope: 'read:orders' }

const post =
  (path: string, form: FormValues | string, headers: Record<string, string> = {}): Send =>
  ({ url }) =>
    request(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: typeof form === 'string' ? form : formOf(form).toString(),
    })
const token = (form: FormValues | string, client?: TestApplication, headers: Record<string, string> = {}) =>
  post('/oidc/token', form, { ...(client ? { authorization: basic(client) } : {}), ...headers })
const asked = (form: FormValues) => token({ ...good, ...form }, machine)
const signed =
  (options: AssertionOptions | ((target: Target) => AssertionOptions) = {}, times = 1): Send =>
  async (target) => {
    const { claims, ...rest } = typeof options === 'function' ? options(target) : options
    const assertion = await signer.assertion({ ...rest, claims: { aud: target.issuer, ...claims } })
    let answer = await token({ ...good, ...assertion })(target)
    for (let count = 1; count < times; count++) answer = await token({ ...good, ...assertion })(target)
    return answer
  }
const withOwnToken =
  (path: string, form: FormValues = {}): Send =>
  async (target) => {
    const { body } = await asked({})(target)
    return post(path, { token: body.access_token, ...form }, { authorization: basic(machine) })(target)
  }

const issued = (sign: '+' | '-', scope?: string) => [
  `${sign} status 200`,
  ...['access_token', 'expires_in', 'token_type'].map((name) => `${sign} member ${name}`),
  ...(scope === undefined ? [] : [`${sign} member scope`, `${sign} scope "${scope}"`]),
]
const refused = (sign: '+' | '-', status: number, error: string) => [
  `${sign} status ${status}`,
  `${sign} error ${error}`,
  `${sign} member error`,
  `${sign} member error_description`,
]
type Difference = Differences[number]

const notNamed: Difference = [
  'Whoever is not an authenticated client gets one and the same answer (RFC 6749 §5.2: "no client authentication included" is invalid_client).',
  ...['+ status 401', '- status 400', '+ error invalid_client', '- error invalid_request', '+ challenge Basic'],
]
const challenged: Difference = [
  'Every refused authentication names a way to authenticate (RFC 9110 §15.5.2: a 401 MUST have a challenge).',
  '+ challenge Basic',
]
const notForThisClient: Difference = [
  'RFC 6749 §5.2 has a code for a client that may not use a grant.',
  ...['+ error unauthorized_client', '- error invalid_request'],
]
const anotherText: Difference = [
  'What can be read in two ways is refused; they read on with what a lenient parser made of it.',
  ...refused('+', 400, 'invalid_request'),
  ...issued('-', 'read:orders'),
]
const exactNames = (scope?: string): Difference => [
  'A scope that does not exist is told, not dropped: nobody wants to find out at the API what the token lacks.',
  ...refused('+', 400, 'invalid_scope'),
  ...issued('-', scope),
]
const uncached: Difference = ['No answer to a request with credentials is for a cache.', '+ no-store']
const revocable = 'JWTs can be introspected and revoked; theirs are good until they expire.'
const emptyScope: Difference = [
  'The answer says that nothing was granted instead of leaving it open.',
  ...['+ member scope', '+ scope ""'],
]

/** What is asked, and in what the answers differ. */
const table: Record<string, [send: () => Send, ...differences: Differences]> = {
  'a good request, secret in the header': [() => asked({})],
  'a good request, secret in the body': [
    () => token({ ...good, client_id: machine.id, client_secret: machine.secret }),
  ],
  'a good request, signed': [() => signed()],
  'no client': [() => token(good), notNamed],
  'an unknown client': [() => token(good, { id: 'nobody', secret: 'x' })],
  'an unknown client in the body': [() => token({ ...good, client_id: 'nobody', client_secret: 'x' }), challenged],
  'a wrong secret': [() => token(good, { id: machine.id, secret: 'wrong' })],
  'a wrong secret in the body': [() => token({ ...good, client_id: machine.id, client_secret: 'wrong' }), challenged],
  'a client that leaves its secret out': [() => token({ ...good, client_id: machine.id }), challenged],
  'a Basic header that is no base64': [() => token(good, undefined, { authorization: 'Basic !!!!' }), notNamed],
  'a Basic header without a colon': [
    () => token(good, undefined, { authorization: `Basic ${btoa('nocolon')}` }),
    notNamed,
  ],
  'another scheme': [
    () => token({ ...good, client_id: machine.id }, undefined, { authorization: 'Bearer abc' }),
    notNamed,
  ],
  'header and body name different clients': [() => token({ ...good, client_id: 'another' }, machine)],
  'secret in header and body': [() => token({ ...good, client_secret: machine.secret }, machine)],
  'an assertion beside a secret': [
    () => async (target) => token({ ...good, ...(await signer.assertion()) }, machine)(target),
  ],
  'a public client that sends a secret': [() => token({ ...good, client_id: page.id, client_secret: 'x' }), challenged],
  'an assertion a second time': [() => signed({}, 2), challenged],
  'an assertion for us and another': [
    () => signed(({ issuer }) => ({ claims: { aud: [issuer, 'https://b.example'] } })),
    [
      'Exactly one audience: an assertion that another server got as well could be used here by that server (CVE-2025-27370).',
      ...refused('+', 401, 'invalid_client'),
      '+ challenge Basic',
      ...issued('-', 'read:orders'),
    ],
  ],
  'an assertion for another server': [() => signed({ claims: { aud: 'https://b.example' } }), challenged],
  'an assertion that expired': [() => signed({ claims: { exp: inSeconds(-60) } }), challenged],
  'an assertion good for an hour': [
    () => signed({ claims: { exp: inSeconds(3600) } }),
    [
      'Five minutes at most: for so long a used one must be remembered, and a lost one is of use to somebody.',
      ...refused('+', 401, 'invalid_client'),
      '+ challenge Basic',
      ...issued('-', 'read:orders'),
    ],
  ],
  'an assertion without jti': [() => signed({ claims: { jti: undefined } as never }), challenged],
  'an assertion without its type': [
    () => async (target) => token({ ...good, client_assertion: (await signer.assertion()).client_assertion })(target),
    notNamed,
  ],
  'an assertion that is no JWT': [
    () => async (target) => token({ ...good, ...(await signer.assertion()), client_assertion: 'x' })(target),
    notNamed,
  ],
  'no grant_type': [() => token({ scope: 'read:orders' }, machine)],
  'an unknown grant type': [() => token({ grant_type: 'password' }, machine)],
  'a grant type that every object has': [() => token({ grant_type: '__proto__' }, machine)],
  'a grant that is not the client’s': [() => token(good, web), notForThisClient],
  'a public client asks for itself': [() => token({ ...good, client_id: page.id }), notForThisClient],
  'a repeated parameter': [() => asked({ scope: ['read:orders', 'read:orders'] })],
  'a secret in the URL': [() => post(`/oidc/token?client_id=${machine.id}&client_secret=${machine.secret}`, good)],
  JSON: [
    () => token(JSON.stringify(good), machine, { 'content-type': 'application/json' }),
    ['Existing SDKs send JSON.', ...issued('+', 'read:orders'), ...refused('-', 400, 'invalid_request')],
  ],
  'another content type': [
    () => token('x', machine, { 'content-type': 'text/plain' }),
    ['RFC 9110 §15.5.16 has a status for it.', '+ status 415', '- status 400'],
  ],
  'a NUL': [() => token(`${formOf(good)}&x=%00`, machine), anotherText],
  'a bad percent-escape': [() => token(`${formOf(good)}&x=%zz`, machine), anotherText],
  'an unknown parameter': [() => asked({ unknown: 'x' })],
  'an empty parameter': [() => asked({ scope: '' }), emptyScope],
  GET: [
    () =>
      ({ url }) =>
        request(`${url}/oidc/token`),
    [
      'The route exists, so the method is what is wrong, and that is said in the form of the endpoint.',
      ...refused('+', 405, 'invalid_request'),
      '+ no-store',
      '- status 404',
    ],
  ],
  'no scope': [() => asked({ scope: undefined }), emptyScope],
  'a scope that is defined and not held': [() => asked({ scope: 'read:orders write:orders' })],
  'a scope that is not defined': [() => asked({ scope: 'read:orders read' }), exactNames('read:orders')],
  'a scope in another case': [() => asked({ scope: 'READ:ORDERS' }), exactNames()],
  'a scope with a quote': [() => asked({ scope: 'read"orders' })],
  'a scope twice': [
    () => asked({ scope: 'read:orders  read:orders' }),
    [
      'A second space means nothing and is no reason to fail.',
      ...issued('+', 'read:orders'),
      ...refused('-', 400, 'invalid_scope'),
    ],
  ],
  offline_access: [() => asked({ scope: 'read:orders offline_access' })],
  'an unknown resource': [() => asked({ resource: 'https://api.example.test/unknown' })],
  'a resource with a slash more': [() => asked({ resource: `${orders}/` })],
  'a resource with a fragment': [() => asked({ resource: `${orders}#x` })],
  'a relative resource': [() => asked({ resource: '/orders' })],
  'two resources': [
    () => asked({ resource: [orders, orders] }),
    [
      'A token has exactly one audience, so a request names one; they take the same one twice for one.',
      ...refused('+', 400, 'invalid_target'),
      ...issued('-', 'read:orders'),
    ],
  ],
  'no resource and no default': [
    () => asked({ resource: undefined }),
    [
      'A token without an audience is good everywhere (RFC 9068 §3); they issue an opaque one that opens nothing.',
      ...refused('+', 400, 'invalid_target'),
      ...issued('-'),
    ],
  ],
  'introspection of a JWT': [
    () => withOwnToken('/oidc/token/introspection'),
    [
      revocable,
      ...['+ status 200', '+ active true', '+ scope "read:orders"'],
      ...['active', 'aud', 'client_id', 'exp', 'iat', 'iss', 'jti', 'scope', 'sub', 'token_type'].map(
        (name) => `+ member ${name}`,
      ),
      ...refused('-', 400, 'unsupported_token_type'),
    ],
  ],
  'introspection of nonsense': [
    () => post('/oidc/token/introspection', { token: 'x' }, { authorization: basic(machine) }),
  ],
  'introspection without a token': [() => post('/oidc/token/introspection', {}, { authorization: basic(machine) })],
  'introspection without a client': [() => post('/oidc/token/introspection', { token: 'x' }), notNamed],
  'introspection by a public client': [
    () => post('/oidc/token/introspection', { token: 'x', client_id: page.id }),
    [
      'RFC 7662 §2.1: the endpoint requires authorization, and a name is none.',
      ...refused('+', 401, 'invalid_client'),
      ...['+ challenge Basic', '- status 200', '- active false', '- member active'],
    ],
  ],
  'revocation of a JWT': [
    () => withOwnToken('/oidc/token/revocation'),
    [revocable, '+ status 200', ...refused('-', 400, 'unsupported_token_type')],
    uncached,
  ],
  'revocation of nonsense': [
    () => post('/oidc/token/revocation', { token: 'x' }, { authorization: basic(machine) }),
    uncached,
  ],
  'revocation with a hint that means nothing': [
    () => post('/oidc/token/revocation', { token: 'x', token_type_hint: 'x' }, { authorization: basic(machine) }),
    uncached,
  ],
  'revocation without a token': [() => post('/oidc/token/revocation', {}, { authorization: basic(machine) }), uncached],
  'revocation without a client': [() => post('/oidc/token/revocation', { token: 'x' }), notNamed, uncached],
  'userinfo without a token': [
    () =>
      ({ url }) =>
        request(`${url}/oidc/me`),
  ],
  'userinfo with nonsense': [
    () =>
      ({ url }) =>
        request(`${url}/oidc/me`, { headers: { authorization: 'Bearer nonsense' } }),
  ],
  'userinfo with a JWT': [
    () => async (target) => {
      const { body } = await asked({})(target)
      return request(`${target.url}/oidc/me`, { headers: { authorization: `Bearer ${body.access_token}` } })
    },
  ],
  'the key set': [
    () =>
      ({ url }) =>
        request(`${url}/oidc/jwks`),
  ],
  'the discovery document': [
    () =>
      ({ issuer }) =>
        request(`${issuer}/.well-known/openid-configuration`),
    ['Only what works is told; what is left out means what we do.', '- member claim_types_supported'],
    [
      'RFC 8628 §4, OpenID Connect Back-Channel Logout §2: the peer is set up without both.',
      ...['logout_session_supported', 'logout_supported'].map((name) => `+ member backchannel_${name}`),
      '+ member device_authorization_endpoint',
    ],
    [
      'OpenID Connect Discovery §3, Initiating User Registration §3: what a client may ask for.',
      ...['acr_values_supported', 'prompt_values_supported', 'request_parameter_supported', 'ui_locales_supported'].map(
        (name) => `+ member ${name}`,
      ),
    ],
    [
      'RFC 8414 §2: left out, these mean client_secret_basic only.',
      ...['introspection', 'revocation'].flatMap((endpoint) => [
        `+ member ${endpoint}_endpoint_auth_methods_supported`,
        `+ member ${endpoint}_endpoint_auth_signing_alg_values_supported`,
      ]),
    ],
  ],
  'an unknown route': [
    () =>
      ({ url }) =>
        request(`${url}/oidc/nothing`),
    [
      'Every answer under /oidc has the form of the protocol, also for what does not exist.',
      ...['+ error invalid_request', '+ member error', '+ member error_description', '+ no-store'],
    ],
  ],
}

test.each(Object.entries(table))('%s', async (_, [send, ...explained]) => {
  expect(await differences(send())).toEqual(explained.flatMap(([, ...facts]) => facts).toSorted())
})
