import { createHash, randomBytes } from 'node:crypto'
import { userScopes } from '../../issuer/directory/consents/consent-scopes.ts'
import { newId } from '../../platform/ids.ts'
import { type Browser, createBrowser, type Visit } from './browser.ts'
import { type Answer, type FormValues, formOf, type TestIssuer } from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'

export const callback = 'https://shop.example.test/callback'
export const signedOut = 'https://shop.example.test/signed-out'

export interface Person {
  id: string
  username: string
  password: string
}

/** The whole code flow through HTTP alone, on any instance of one issuer. */
export interface CodeFlow {
  /** Default: Native, first-party, without a secret. */
  createClient(options?: { type?: string; isThirdParty?: boolean; custom?: object }): Promise<TestApplication>
  createPerson(): Promise<Person>
  browser(): Browser
  /** Where a browser begins. Default: offline access, and a challenge for `verifier`. */
  authorizationUrl(client: TestApplication, parameters?: FormValues): string
  /** Redirects within the issuer followed: a page, or the way back to the client. */
  ask(browser: Browser, client: TestApplication, parameters?: FormValues): Promise<Visit>
  /** What a person enters. */
  credentials(person: Person): Record<string, string>
  /** The form of a page, sent to one instance as a browser does, redirects not followed. */
  send(browser: Browser, page: Visit, values: Record<string, string>, instance?: number): Promise<Visit>
  /** The code for a new sign-in. */
  signIn(browser: Browser, client: TestApplication, person: Person, parameters?: FormValues): Promise<string>
  redeem(client: TestApplication, code: string, instance?: number, form?: FormValues): Promise<Answer>
  refresh(client: TestApplication, refreshToken: string, instance?: number, form?: FormValues): Promise<Answer>
  userinfo(accessToken: string, instance?: number): Promise<number>
}

export const verifier = randomBytes(32).toString('base64url')
const challenge = createHash('sha256').update(verifier).digest('base64url')

/** The parameters of the redirect to a client; the page, if it is one, is in the error. */
export const parametersOf = (visit: Visit): Record<string, string> => {
  if (!visit.location?.startsWith(callback))
    throw new Error(`no way back: ${visit.status} ${visit.location}\n${visit.text}`)
  return Object.fromEntries(new URL(visit.location).searchParams)
}

const codeOf = (visit: Visit): string => {
  const { code } = parametersOf(visit)
  if (code === undefined) throw new Error(`no code: ${visit.location}`)
  return code
}

export const authorizationUrlOf = (issuer: string, clientId: string, parameters: FormValues = {}): string =>
  `${issuer}/auth?${formOf({
    client_id: clientId,
    redirect_uri: callback,
    response_type: 'code',
    scope: 'openid offline_access',
    prompt: 'consent',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...parameters,
  })}`

export const createCodeFlow = (issuer: Pick<TestIssuer, 'api' | 'baseUrl' | 'issuer' | 'token' | 'urls'>): CodeFlow => {
  const { origin } = new URL(issuer.baseUrl)
  const made = (answer: Answer) => {
    if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const authorizationUrl: CodeFlow['authorizationUrl'] = (client, parameters) =>
    authorizationUrlOf(issuer.issuer, client.id, parameters)
  const ask: CodeFlow['ask'] = (browser, client, parameters) => browser.get(authorizationUrl(client, parameters))
  const credentials: CodeFlow['credentials'] = ({ username, password }) => ({
    identifier: username,
    password,
    choice: 'sign_in',
  })

  return {
    authorizationUrl,
    ask,
    credentials,
    browser: () => createBrowser(issuer.baseUrl),
    async createClient({ type = 'Native', isThirdParty = false, custom = {} } = {}) {
      const { id, secret } = made(
        await issuer.api('POST', '/applications', {
          name: 'Shop',
          type,
          isThirdParty,
          oidcClientMetadata: { redirectUris: [callback], postLogoutRedirectUris: [signedOut] },
          customClientMetadata: custom,
        }),
      )
      if (isThirdParty) made(await issuer.api('POST', `/applications/${id}/user-consent-scopes`, { userScopes }))
      return { id, ...(type === 'Traditional' && { secret }) }
    },
    async createPerson() {
      const person = { username: `p_${newId(8)}`, password: randomBytes(12).toString('hex') }
      return { ...person, id: made(await issuer.api('POST', '/users', person)).id }
    },
    send: (browser, page, values, instance = 0) => {
      const form = page.forms[0]
      if (!form) throw new Error(`${page.url} (${page.status}) has no form:\n${page.text}`)
      return browser.send(form.action.replace(issuer.baseUrl, issuer.urls[instance]!), {
        method: form.method,
        body: formOf({ ...form.fields, ...values }),
        headers: { origin, 'sec-fetch-site': 'same-origin' },
      })
    },
    async signIn(browser, client, person, parameters) {
      return codeOf(await browser.submit(await ask(browser, client, parameters), credentials(person)))
    },
    redeem: (client, code, instance = 0, form = {}) =>
      issuer.token(
        client,
        { grant_type: 'authorization_code', code, redirect_uri: callback, code_verifier: verifier, ...form },
        { instance },
      ),
    refresh: (client, refreshToken, instance = 0, form = {}) =>
      issuer.token(client, { grant_type: 'refresh_token', refresh_token: refreshToken, ...form }, { instance }),
    async userinfo(accessToken, instance = 0) {
      const headers = { authorization: `Bearer ${accessToken}` }
      return (await fetch(`${issuer.urls[instance]}/oidc/me`, { headers })).status
    },
  }
}
