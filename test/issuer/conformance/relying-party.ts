import { createHash, randomBytes } from 'node:crypto'
import { createRemoteJWKSet, type JWTPayload, type JWTVerifyResult, jwtVerify } from 'jose'
import { type Browser, createBrowser, type Visit } from '../../support/browser.ts'
import { type Answer, basic, type FormValues, formOf, request } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { type PageAnswer, redirectUri, type Target } from './target.ts'

/** A client and one browser that is sent to the provider. */
export interface RelyingParty {
  client: TestApplication
  browser: Browser
  discovery: Discovery
  /** The parameters of an authorization request, with those given instead; undefined leaves one out. */
  authorizationRequest(parameters?: FormValues): FormValues
  authorize(parameters?: FormValues): Promise<Outcome>
  /** Answers pages until the browser leaves, or there is nothing to answer. */
  follow(visit: Visit): Promise<Outcome>
  token(form: FormValues, headers?: Record<string, string>): Promise<Answer>
  redeem(code: string, form?: FormValues): Promise<Answer>
  verify(idToken: string): Promise<JWTVerifyResult>
  userinfo(accessToken: string): Promise<Answer>
  /** The whole code flow; throws when there are no tokens at its end. */
  signIn(parameters?: FormValues): Promise<SignIn>
  endSession(parameters: FormValues): Promise<Outcome>
}

// What a test asserts of the answers, it looks for in them.
export interface Discovery {
  authorization_endpoint: string
  token_endpoint: string
  userinfo_endpoint: string
  end_session_endpoint: string
  jwks_uri: string
  claims_parameter_supported?: boolean
  grant_types_supported?: string[]
}

/** Where a browser ended up. */
export interface Outcome {
  /** What the client is told, when the browser was sent to its address. */
  callback: URLSearchParams | undefined
  /** Where it was sent outside of the provider. */
  location: string | undefined
  /** The last answer of the provider. */
  page: Visit
  /** The pages on the way, by what they ask for. */
  asked: PageAnswer['page'][]
}

export interface SignIn {
  callback: URLSearchParams
  asked: PageAnswer['page'][]
  code: string
  nonce: string
  tokens: Answer['body']
  idToken: string
  claims: JWTPayload
}

const random = (bytes = 16) => randomBytes(bytes).toString('base64url')
const maxPages = 6

export const discover = (issuer: string): Promise<Answer> => request(`${issuer}/.well-known/openid-configuration`)

export const createRelyingParty = async (
  { issuer, answers, clients }: Target,
  client: TestApplication = clients.basic,
  browser: Browser = createBrowser(issuer),
): Promise<RelyingParty> => {
  const discovery: Discovery = (await discover(issuer)).body
  const keys = createRemoteJWKSet(new URL(discovery.jwks_uri))

  const authorizationRequest: RelyingParty['authorizationRequest'] = (parameters) => ({
    client_id: client.id,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'openid',
    state: random(),
    nonce: random(),
    ...parameters,
  })

  const follow: RelyingParty['follow'] = async (visit) => {
    const asked: PageAnswer['page'][] = []
    let page = visit
    while (page.location === undefined && asked.length < maxPages) {
      const answer = answers.find(({ field }) => page.forms.some(({ names }) => names.includes(field)))
      if (answer === undefined) break
      const { names } = page.forms.find(({ names }) => names.includes(answer.field))!
      asked.push(answer.page)
      const values = Object.entries(answer.values).filter(([name]) => names.includes(name))
      page = await browser.submit(page, Object.fromEntries(values), { with: answer.field })
    }
    const { location } = page
    const isCallback = location?.startsWith(`${redirectUri}?`)
    return { page, asked, location, callback: isCallback ? new URL(location!).searchParams : undefined }
  }
  const visit = async (endpoint: string, parameters: FormValues) =>
    follow(await browser.get(`${endpoint}?${formOf(parameters)}`))

  const authorize: RelyingParty['authorize'] = (parameters) =>
    visit(discovery.authorization_endpoint, authorizationRequest(parameters))

  const token: RelyingParty['token'] = (form, headers = { authorization: basic(client) }) =>
    request(discovery.token_endpoint, { method: 'POST', headers, body: formOf(form) })

  const redeem: RelyingParty['redeem'] = (code, form) =>
    token({ grant_type: 'authorization_code', code, redirect_uri: redirectUri, ...form })

  const verify: RelyingParty['verify'] = (idToken) => jwtVerify(idToken, keys, { issuer, audience: client.id })

  return {
    client,
    browser,
    discovery,
    authorizationRequest,
    authorize,
    follow,
    token,
    redeem,
    verify,
    userinfo: (accessToken) =>
      request(discovery.userinfo_endpoint, { headers: { authorization: `Bearer ${accessToken}` } }),
    async signIn(parameters) {
      const nonce = random()
      const { callback, asked, page } = await authorize({ nonce, ...parameters })
      const code = callback?.get('code')
      if (!callback || !code) throw new Error(`no code: ${page.status} ${page.location}\n${page.text.slice(0, 4_000)}`)
      const { status, body: tokens } = await redeem(code)
      if (status !== 200) throw new Error(`no tokens: ${status} ${JSON.stringify(tokens)}`)
      const { payload: claims } = await verify(tokens.id_token)
      return { callback, asked, code, nonce, tokens, idToken: tokens.id_token, claims }
    },
    endSession: (parameters) => visit(discovery.end_session_endpoint, parameters),
  }
}

/** RFC 7636 §4. */
export const pkcePair = () => {
  const verifier = random(32)
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

/** A JWT that nobody signed. */
export const unsigned = (claims: object): string => {
  const [header, payload] = [{ alg: 'none' }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  return `${header}.${payload}.`
}
