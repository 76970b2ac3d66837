import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CompactSign, exportJWK, generateKeyPair, type JWK } from 'jose'

/**
 * An OpenID provider on 127.0.0.1 that does what it should: discovery, PKCE, client authentication, codes that are good
 * once, ID tokens, userinfo. It signs in whoever `person` is without asking, or whom a `login_hint` names if it was
 * started with `hinted`. `be` makes it hostile. It speaks GitHub's API too, for the person that `person` is, and
 * Microsoft's issuers that name a tenant.
 */
export interface IdentityProvider {
  url: string
  issuer: string
  clientId: string
  clientSecret: string
  /** Who signs in: claims of the ID token and of userinfo. */
  person: Person
  /** From now on; without a hostility it is good again. */
  be(hostility?: HostilityName | Hostility): void
  /** What it was asked, as `GET /path`. */
  asked: string[]
  /** What was posted to the token endpoint. */
  tokenRequests: URLSearchParams[]
  /** As the browser that was sent to `url`: where it is sent back to. What a provider posts stands in the query. */
  signIn(url: string): Promise<URL>
  /** Other keys from now on; the ones before are no longer published. */
  rotateKeys(): Promise<void>
  close(): Promise<void>
}

type Claims = Record<string, unknown>
type Person = Claims & { sub: string }

export interface Hostility {
  /** Of the ID token. */
  claims?: (claims: Claims) => Claims
  /** `other_key`: signed by a key that is not published, under the name of one that is. */
  signature?: 'none' | 'HS256' | 'other_key'
  userinfo?: (claims: Claims) => Claims
  discovery?: (document: Claims) => Claims
  /** Of the redirect back. */
  callback?: (parameters: URLSearchParams) => void
  /** Instead of what it would answer there. */
  answer?: Partial<Record<EndpointName, (response: ServerResponse) => void>>
}

export type EndpointName = 'discovery' | 'jwks' | 'token' | 'userinfo'

const epoch = () => Math.floor(Date.now() / 1_000)
const redirect =
  (location: string) =>
  (response: ServerResponse): void => {
    response.writeHead(307, { location }).end()
  }
const fail = (response: ServerResponse): void => {
  response.writeHead(500, { 'content-type': 'text/plain' }).end('out of order')
}
/** Never ends by itself. */
const wait = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'application/json' }).write('{')
}
const huge = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(`{"filler":"${'x'.repeat(10_000_000)}"}`)
}
const without = (claims: Claims, name: string): Claims =>
  Object.fromEntries(Object.entries(claims).filter(([member]) => member !== name))
const claimed = (members: Claims): Hostility => ({
  claims: (claims) => ({ ...claims, ...members }),
  userinfo: (claims) => ({ ...claims, ...members }),
})

/** What a provider, or somebody between, may do. */
export const hostilities = {
  wrong_nonce: { claims: (claims) => ({ ...claims, nonce: 'of another request' }) },
  no_nonce: { claims: (claims) => without(claims, 'nonce') },
  wrong_audience: { claims: (claims) => ({ ...claims, aud: 'another client' }) },
  foreign_audience: { claims: (claims) => ({ ...claims, aud: [claims.aud, 'another client'] }) },
  foreign_audience_with_azp: {
    claims: (claims) => ({ ...claims, aud: [claims.aud, 'another client'], azp: claims.aud }),
  },
  other_authorized_party: { claims: (claims) => ({ ...claims, azp: 'another client' }) },
  wrong_issuer: { claims: (claims) => ({ ...claims, iss: 'https://issuer.example' }) },
  no_subject: { claims: (claims) => without(claims, 'sub') },
  empty_subject: { claims: (claims) => ({ ...claims, sub: '' }) },
  unsigned: { signature: 'none' },
  symmetric: { signature: 'HS256' },
  other_key: { signature: 'other_key' },
  expired: { claims: (claims) => ({ ...claims, iat: epoch() - 700, exp: epoch() - 61 }) },
  no_expiry: { claims: (claims) => without(claims, 'exp') },
  issued_in_future: { claims: (claims) => ({ ...claims, iat: epoch() + 120, exp: epoch() + 400 }) },
  not_yet_valid: { claims: (claims) => ({ ...claims, nbf: epoch() + 120 }) },
  userinfo_of_another: { userinfo: (claims) => ({ ...claims, sub: 'somebody else' }) },
  unverified_email: claimed({ email_verified: false }),
  unverified_email_as_text: claimed({ email_verified: 'false' }),
  verified_email_as_text: claimed({ email_verified: 'true' }),
  unsaid_email: {
    claims: (claims) => without(claims, 'email_verified'),
    userinfo: (claims) => without(claims, 'email_verified'),
  },
  foreign_domain: claimed({ email: 'ceo@other.example', email_verified: true }),
  /** The answer says that it is of another provider (RFC 9207 §2.4). */
  mix_up: { callback: (parameters) => parameters.set('iss', 'https://issuer.example') },
  /** It says that it always names itself, and does not. */
  unnamed: { callback: (parameters) => parameters.delete('iss') },
  other_state: { callback: (parameters) => parameters.set('state', 'of another request') },
  no_state: { callback: (parameters) => parameters.delete('state') },
  error_with_script: {
    callback(parameters) {
      parameters.delete('code')
      parameters.set('error', 'access_denied')
      parameters.set('error_description', '<script>alert(1)</script>')
    },
  },
  slow: { answer: { token: wait } },
  huge: { answer: { token: huge } },
  huge_keys: { answer: { jwks: huge } },
  broken: { answer: { token: fail } },
  out_of_order: { answer: { discovery: fail, jwks: fail, token: fail, userinfo: fail } },
  redirect_to_loopback: { answer: { token: redirect('http://127.0.0.1:9/') } },
  userinfo_redirected: { answer: { userinfo: redirect('http://127.0.0.1:9/') } },
  keys_redirected: { answer: { jwks: redirect('http://169.254.169.254/latest/meta-data/') } },
  keys_elsewhere: { discovery: (document) => ({ ...document, jwks_uri: 'http://169.254.169.254/latest/keys' }) },
  token_elsewhere: { discovery: (document) => ({ ...document, token_endpoint: 'http://169.254.169.254/token' }) },
  document_of_another: { discovery: (document) => ({ ...document, issuer: 'https://issuer.example' }) },
} as const satisfies Record<string, Hostility>
export type HostilityName = keyof typeof hostilities

export interface IdentityProviderOptions {
  person?: Person
  /** Whom a `login_hint` of the authorization request names. */
  hinted?: (loginHint: string) => Person
  clientId?: string
  clientSecret?: string
  /** Instead of comparing with `clientSecret`. */
  acceptSecret?: (secret: string) => Promise<boolean>
  /** Its issuer is a template, as Microsoft's: this is the tenant of whoever signs in. */
  tenant?: string
}

const read = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const send = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** RFC 6749 §2.3.1. */
const formDecoded = (text: string) => decodeURIComponent(text.replaceAll('+', ' '))

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

const newPair = () => generateKeyPair('RS256', { modulusLength: 2048 })
/** Of this process: one takes a tenth of a second, and four providers at a time have others. */
const pairs: ReturnType<typeof newPair>[] = []
let turn = 0
const pairInTurn = () => {
  const place = turn++ % 8
  pairs[place] ??= newPair()
  return pairs[place]
}

const keysOf = async ({ publicKey, privateKey }: Awaited<ReturnType<typeof newPair>>) => {
  const kid = randomBytes(6).toString('hex')
  return { privateKey, kid, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' } satisfies JWK }
}

/** Listens on a free port; `close()` it. */
export const startIdentityProvider = async (options: IdentityProviderOptions = {}): Promise<IdentityProvider> => {
  const { clientId = 'surrogate', clientSecret = randomBytes(24).toString('base64url'), tenant } = options
  let keys = await keysOf(await pairInTurn())
  const others = await keysOf(await pairInTurn())
  let hostility: Hostility = {}
  const codes = new Map<string, URLSearchParams>()
  const tokens = new Map<string, Person>()

  const base = () => `${provider.url}${tenant === undefined ? '' : '/common/v2.0'}`
  /** In tokens. */
  const issuerNow = () => (tenant === undefined ? provider.url : `${provider.url}/${tenant}/v2.0`)

  const sign = async (claims: Claims): Promise<string> => {
    if (hostility.signature === 'none') return `${encoded({ alg: 'none' })}.${encoded(claims)}.`
    const [alg, key] =
      hostility.signature === 'HS256'
        ? ['HS256', new TextEncoder().encode(clientSecret)]
        : ['RS256', hostility.signature === 'other_key' ? others.privateKey : keys.privateKey]
    return new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
      .setProtectedHeader({ alg: alg as string, kid: keys.kid })
      .sign(key as Uint8Array)
  }

  const document = (): Claims => ({
    issuer: tenant === undefined ? provider.url : `${provider.url}/{tenantid}/v2.0`,
    authorization_endpoint: `${base()}/authorize`,
    token_endpoint: `${base()}/token`,
    userinfo_endpoint: `${base()}/userinfo`,
    jwks_uri: `${base()}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    code_challenge_methods_supported: ['S256'],
    ...(tenant === undefined && { authorization_response_iss_parameter_supported: true }),
  })

  const authorize = (query: URLSearchParams, response: ServerResponse) => {
    const code = randomBytes(16).toString('base64url')
    codes.set(code, query)
    const answer = new URLSearchParams({ code, state: query.get('state') ?? '' })
    if (tenant === undefined && query.has('nonce')) answer.set('iss', provider.url)
    hostility.callback?.(answer)
    const target = query.get('redirect_uri') ?? ''
    if (query.get('response_mode') !== 'form_post')
      return void response.writeHead(303, { location: `${target}?${answer}` }).end()
    const escaped = (text: string) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
    const inputs = [...answer].map(([name, value]) => `<input type="hidden" name="${name}" value="${escaped(value)}">`)
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end(`<form method="post" action="${escaped(target)}">${inputs.join('')}<button>Continue</button></form>`)
  }

  const isClient = async (request: IncomingMessage, form: URLSearchParams) => {
    const [, basic] = /^Basic (.+)$/.exec(request.headers.authorization ?? '') ?? []
    const [id, secret] = basic
      ? Buffer.from(basic, 'base64').toString().split(':').map(formDecoded)
      : [form.get('client_id') ?? '', form.get('client_secret') ?? '']
    if (id !== clientId) return false
    return options.acceptSecret ? options.acceptSecret(secret ?? '') : secret === clientSecret
  }

  const token = async (request: IncomingMessage, response: ServerResponse) => {
    const form = new URLSearchParams(await read(request))
    provider.tokenRequests.push(form)
    if (!(await isClient(request, form))) return send(response, { error: 'invalid_client' }, 401)
    const code = form.get('code') ?? ''
    const asked = codes.get(code)
    codes.delete(code)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isRight =
      asked?.get('redirect_uri') === form.get('redirect_uri') && asked?.get('code_challenge') === challenge
    if (asked === undefined || !isRight) return send(response, { error: 'invalid_grant' }, 400)
    const accessToken = randomBytes(16).toString('base64url')
    const hint = asked.get('login_hint')
    const person = (hint !== null && options.hinted?.(hint)) || provider.person
    tokens.set(accessToken, person)
    const answer = { access_token: accessToken, token_type: 'Bearer', expires_in: 300 }
    if (!asked.get('scope')?.split(' ').includes('openid')) return send(response, answer)
    const claims = {
      ...{ iss: issuerNow(), aud: clientId, iat: epoch(), exp: epoch() + 300, nonce: asked.get('nonce') },
      ...(tenant !== undefined && { tid: tenant }),
      ...person,
    }
    send(response, { ...answer, id_token: await sign(hostility.claims?.(claims) ?? claims) })
  }

  /** Whose access token it came with. */
  const caller = ({ headers }: IncomingMessage) => tokens.get((headers.authorization ?? '').replace(/^\w+ /, ''))

  /** As GitHub tells who somebody is. */
  const gitHub = (path: string): unknown => {
    const { sub, email, email_verified: verified, name, picture } = provider.person
    if (path === '/api/v3/user')
      return { id: Number(sub), login: 'octocat', email: 'shown@example.com', name, avatar_url: picture }
    return [
      { email: 'old@example.com', primary: false, verified: true },
      { email, primary: true, verified },
    ]
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://provider')
    provider.asked.push(`${request.method} ${url.pathname}`)
    const path = url.pathname.replace(/^\/(common|organizations|consumers)\/v2\.0/, '')
    const instead = (name: EndpointName) => {
      const answer = hostility.answer?.[name]
      answer?.(response)
      return answer !== undefined
    }
    const unauthorized = () => send(response, { error: 'invalid_token' }, 401)
    const hasBody = 'content-length' in request.headers || 'transfer-encoding' in request.headers
    const handle = async () => {
      // As front ends of large providers do (RFC 9110 §9.3.1).
      if (request.method === 'GET' && hasBody) send(response, { error: 'invalid_request' }, 400)
      else if (path === '/.well-known/openid-configuration') {
        if (!instead('discovery')) send(response, hostility.discovery?.(document()) ?? document())
      } else if (path === '/jwks') {
        if (!instead('jwks')) send(response, { keys: [keys.jwk] })
      } else if (path === '/authorize' || path === '/login/oauth/authorize') authorize(url.searchParams, response)
      else if (path === '/token' || path === '/login/oauth/access_token') {
        if (!instead('token')) await token(request, response)
      } else if (path === '/userinfo') {
        const person = caller(request)
        if (!instead('userinfo')) person ? send(response, hostility.userinfo?.(person) ?? person) : unauthorized()
      } else if (path.startsWith('/api/v3/user')) caller(request) ? send(response, gitHub(path)) : unauthorized()
      else response.writeHead(404).end()
    }
    handle().catch((error) => response.writeHead(500).end(String(error)))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const provider: IdentityProvider = {
    url,
    issuer: url,
    clientId,
    clientSecret,
    person: options.person ?? {
      sub: '7305177',
      email: 'ada@example.com',
      email_verified: true,
      name: 'Ada Lovelace',
      picture: 'https://pictures.example/ada.png',
    },
    be(next = {}) {
      hostility = typeof next === 'string' ? hostilities[next] : next
    },
    asked: [],
    tokenRequests: [],
    async signIn(target) {
      const answer = await fetch(target, { redirect: 'manual' })
      const location = answer.headers.get('location')
      if (location !== null) return new URL(location)
      const page = await answer.text()
      const unescaped = (text: string) => text.replace(/&#(\d+);/g, (_, sign) => String.fromCharCode(Number(sign)))
      const back = new URL(unescaped(/action="([^"]*)"/.exec(page)?.[1] ?? ''))
      for (const [, name = '', value = ''] of page.matchAll(/name="([^"]*)" value="([^"]*)"/g))
        back.searchParams.set(name, unescaped(value))
      return back
    },
    async rotateKeys() {
      keys = await keysOf(await newPair())
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return provider
}
