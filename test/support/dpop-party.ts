import { type DpopClient, newDpopClient, type ProofOptions } from './dpop.ts'
import { type Answer, basic, type FormValues, formOf, request, type TestIssuer } from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'

/** Whoever has a key and asks an issuer, with proofs by `jose` that have the issuer's nonce. */
export interface DpopParty extends DpopClient {
  /** A good one at this moment. */
  nonce(): Promise<string>
  token(application: TestApplication, form: FormValues, options?: PartyOptions): Promise<Answer>
  /** `POST /oidc/request` (RFC 9126). */
  push(application: TestApplication, form: FormValues, options?: PartyOptions): Promise<Answer>
  /** Of a token that is sent by the scheme `DPoP`. */
  userinfo(accessToken: string, options?: PartyOptions): Promise<Answer>
  /** A call of the Management API. */
  api(method: string, path: string, accessToken: string, options?: PartyOptions): Promise<Answer>
}

export interface PartyOptions extends ProofOptions {
  instance?: number
  /** Instead of a new one. */
  sent?: string
  /** Instead of a good one. */
  nonce?: string | undefined
}

export const createDpopParty = async (issuer: TestIssuer, alg?: string): Promise<DpopParty> => {
  const key = await newDpopClient(alg)

  /** Told to whoever sends a proof without one. */
  const nonce = async () => {
    const url = `${issuer.issuer}/token`
    const answer = await request(`${issuer.url}/oidc/token`, {
      method: 'POST',
      headers: { dpop: await key.proof({ method: 'POST', url }) },
      body: new URLSearchParams({ client_id: 'nobody', grant_type: 'client_credentials' }),
    })
    const told = answer.headers.get('dpop-nonce')
    if (answer.body.error !== 'use_dpop_nonce' || told === null) throw new Error('no nonce was told')
    return told
  }

  const call = async (
    method: string,
    path: string,
    { headers = {}, body, token }: { headers?: Record<string, string>; body?: URLSearchParams; token?: string },
    options: PartyOptions = {},
  ) => {
    const about = {
      method,
      url: issuer.baseUrl + path.split('?', 1)[0],
      nonce: 'nonce' in options ? options.nonce : await nonce(),
      ...(token !== undefined && { token }),
    }
    const dpop = options.sent ?? (await key.proof(about, options))
    return request(issuer.urls[options.instance ?? 0] + path, {
      method,
      headers: { dpop, ...headers },
      ...(body && { body }),
    })
  }
  const post = (path: string, application: TestApplication, form: FormValues, options?: PartyOptions) => {
    const isPublic = application.secret === undefined
    const body = formOf({ ...(isPublic ? { client_id: application.id } : {}), ...form })
    return call('POST', path, { headers: isPublic ? {} : { authorization: basic(application) }, body }, options)
  }
  const use = (method: string, path: string, token: string, options?: PartyOptions) =>
    call(method, path, { headers: { authorization: `DPoP ${token}` }, token }, options)

  return {
    ...key,
    nonce,
    token: (application, form, options) => post('/oidc/token', application, form, options),
    push: (application, form, options) => post('/oidc/request', application, form, options),
    userinfo: (token, options) => use('GET', '/oidc/me', token, options),
    api: (method, path, token, options) => use(method, `/api${path}`, token, options),
  }
}
