import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { type Browser, createBrowser, type Visit } from '../../../support/browser.ts'
import { type AssertionOptions, type KeyClient, registerKeyClient } from '../../../support/client-keys.ts'
import type { ProofOptions } from '../../../support/dpop.ts'
import { createDpopParty, type DpopParty, type PartyOptions } from '../../../support/dpop-party.ts'
import { orders, startTestGateway, type TestGateway } from '../../../support/gateway.ts'
import {
  type Answer,
  type FormValues,
  formOf,
  request,
  startTestIssuer,
  type TestIssuer,
} from '../../../support/issuer.ts'
import { until } from '../../../support/until.ts'
import { pkcePair } from '../relying-party.ts'
import { redirectUri } from '../target.ts'

/** The issuer, applications that are held to FAPI 2.0, and an API behind the gateway that they call. */
export interface Fapi2 {
  issuer: TestIssuer
  gateway: TestGateway
  clients: Readonly<Record<'first' | 'second' | 'rs256', KeyClient>>
  /** A client with a new key and its own browser. */
  begin(client?: KeyClient): Promise<Fapi2Flow>
  close(): Promise<void>
}

/** How a client proves itself and its key. */
interface Proofs {
  /** Of the assertion. `none`: there is none. */
  assertion?: AssertionOptions | 'none'
  /** Of the DPoP proof, which `key` makes. `none`: there is none. */
  proof?: PartyOptions | 'none'
  key?: DpopParty
}

export interface Fapi2Flow {
  client: KeyClient
  key: DpopParty
  browser: Browser
  /** `POST /oidc/request`. Default: a good request with PKCE, without a proof. */
  push(parameters?: FormValues, proofs?: Proofs): Promise<Answer>
  /** `push` that must succeed. */
  pushed(parameters?: FormValues, proofs?: Proofs): Promise<string>
  /** The browser is sent to the issuer; the person signs in where she is asked. */
  visit(requestUri: string, parameters?: FormValues): Promise<Visited>
  redeem(code: string, form?: FormValues, proofs?: Proofs): Promise<Answer>
  /** Pushes, visits, redeems; each must succeed. */
  signIn(parameters?: FormValues): Promise<{ callback: URLSearchParams; tokens: Answer['body']; requestUri: string }>
  /** A code; a request that leads to none throws. */
  code(parameters?: FormValues, proofs?: Proofs): Promise<string>
  /** Status of the API for a token. */
  call(accessToken: string, options?: CallOptions): Promise<number>
}

interface CallOptions extends ProofOptions {
  scheme?: string
  key?: DpopParty
  /** Instead of a new proof. */
  sent?: string
}

export interface Visited {
  /** What the client is told; undefined when the browser was not sent to it. */
  callback: URLSearchParams | undefined
  page: Visit
}

const password = 'correct horse battery staple'
const email = 'ada@example.test'
const profile = { customClientMetadata: { securityProfile: 'fapi2' } }

const register = async (issuer: TestIssuer, alg: string) => {
  const metadata = { redirectUris: [redirectUri] }
  const client = await registerKeyClient(issuer, { alg, type: 'Traditional', metadata })
  const { status } = await issuer.api('PATCH', `/applications/${client.id}`, profile)
  // It is refused here already; the module is about an application that is older than that.
  if (alg === 'RS256') {
    expect(status).toBe(422)
    await issuer.sql('UPDATE applications SET custom_client_metadata = $2 WHERE id = $1', [
      client.id,
      JSON.stringify(profile.customClientMetadata),
    ])
  } else expect(status).toBe(200)
  return client
}

export const startFapi2 = async (): Promise<Fapi2> => {
  const issuer = await startTestIssuer()
  await issuer.createResource({ indicator: orders, scopes: ['read:orders'] })
  const user = await issuer.api('POST', '/users', { primaryEmail: email, password })
  await issuer.grantUser(user.body.id, orders, ['read:orders'])
  const feed = await issuer.createMachine(issuer.managementResource, ['revocations'])
  const gateway = await startTestGateway({
    config: () => ({
      issuers: [{ issuer: issuer.issuer, client: feed, revocations: { mode: 'feed' } }],
      routes: [{ id: 'o', path: '/orders/**', audience: [orders], upstream: 'orders', dpop: 'required' }],
    }),
  })
  await until(async () => expect(await gateway.health.ready()).toMatchObject({ ok: true }))
  const [first, second, rs256] = [
    await register(issuer, 'ES256'),
    await register(issuer, 'PS256'),
    await register(issuer, 'RS256'),
  ]
  const clients = { first, second, rs256 }
  return {
    issuer,
    gateway,
    clients,
    begin: (client = first) => beginFlow(issuer, gateway, client),
    async close() {
      await gateway.close()
      await issuer.close()
    },
  }
}

const beginFlow = async (issuer: TestIssuer, gateway: TestGateway, client: KeyClient): Promise<Fapi2Flow> => {
  const own = await createDpopParty(issuer)
  const browser = createBrowser(issuer.baseUrl)
  const { verifier, challenge } = pkcePair()
  const application = { id: client.id }

  const proven = async (form: FormValues, assertion: Proofs['assertion']) => ({
    client_id: client.id,
    ...(assertion !== 'none' && (await client.assertion(assertion))),
    ...form,
  })

  const push: Fapi2Flow['push'] = async (parameters, { assertion, proof = 'none', key = own } = {}) => {
    const form = await proven(
      {
        ...{ redirect_uri: redirectUri, response_type: 'code', scope: 'openid read:orders', resource: orders },
        ...{ state: random(), nonce: random(), code_challenge: challenge, code_challenge_method: 'S256' },
        ...parameters,
      },
      assertion,
    )
    if (proof !== 'none') return key.push(application, form, proof)
    return request(`${issuer.url}/oidc/request`, { method: 'POST', body: formOf(form) })
  }
  const pushed: Fapi2Flow['pushed'] = async (...asked) => {
    const { status, body } = await push(...asked)
    if (status !== 201) throw new Error(`not pushed: ${status} ${JSON.stringify(body)}`)
    return body.request_uri
  }

  const visit: Fapi2Flow['visit'] = async (requestUri, parameters) => {
    const sent = formOf({ client_id: client.id, request_uri: requestUri, ...parameters })
    let page = await browser.get(`${issuer.issuer}/auth?${sent}`)
    if (page.forms.some(({ names }) => names.includes('password')))
      page = await browser.submit(page, { identifier: email, password, choice: 'sign_in' })
    const isCallback = page.location?.startsWith(`${redirectUri}?`)
    return { page, callback: isCallback ? new URL(page.location!).searchParams : undefined }
  }

  const redeem: Fapi2Flow['redeem'] = async (code, form, { assertion, proof = {}, key = own } = {}) => {
    const sent = await proven(
      {
        ...{ grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier },
        ...{ resource: orders, ...form },
      },
      assertion,
    )
    if (proof !== 'none') return key.token(application, sent, proof)
    return request(`${issuer.url}/oidc/token`, { method: 'POST', body: formOf(sent) })
  }

  const callbackOf = async (requestUri: string) => {
    const { callback, page } = await visit(requestUri)
    if (!callback?.has('code'))
      throw new Error(`no code: ${page.status} ${page.location}\n${page.text.slice(0, 2_000)}`)
    return callback
  }

  return {
    ...{ client, key: own, browser, push, pushed, visit, redeem },
    async signIn(parameters) {
      const requestUri = await pushed(parameters)
      const callback = await callbackOf(requestUri)
      const { status, body: tokens } = await redeem(callback.get('code')!)
      if (status !== 200) throw new Error(`no tokens: ${status} ${JSON.stringify(tokens)}`)
      return { callback, tokens, requestUri }
    },
    code: async (parameters, proofs) => (await callbackOf(await pushed(parameters, proofs))).get('code')!,
    async call(token, { scheme = 'DPoP', key = own, sent, ...options } = {}) {
      const url = `${gateway.url}/orders/1`
      const send = async (dpop: string) => fetch(url, { headers: { authorization: `${scheme} ${token}`, dpop } })
      if (sent !== undefined) return (await send(sent)).status
      const first = await send(await key.proof({ url, token }))
      const nonce = first.headers.get('dpop-nonce') ?? undefined
      return (await send(await key.proof({ url, token, nonce }, options))).status
    },
  }
}

const random = () => randomBytes(16).toString('base64url')
