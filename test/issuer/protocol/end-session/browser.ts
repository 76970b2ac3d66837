import { randomBytes } from 'node:crypto'
import { createSigningKeys, type TokenKind } from '../../../../issuer/tokens/keys/signing-keys.ts'
import { createEnvelope } from '../../../../platform/envelope.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { type Answer, formOf, request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import { createSessions, type Sessions, type TestSession } from '../../../support/sessions.ts'

export const endSession = '/oidc/session/end'
export const returnUri = 'https://app.example.test/signed-out'

export type Values = Record<string, string | string[] | undefined>

/** The form of the page that asks. */
export interface LogoutForm {
  action: string
  xsrf: string
}

export interface LogoutTest {
  issuer: TestIssuer
  sessions: Sessions
  /** An application that signing out leads back to. */
  createClient(options?: { name?: string; type?: 'Native' | 'SPA'; uris?: string[] }): Promise<TestApplication>
  /** A JWS of the issuer. Default: an ID token. */
  sign(claims: Record<string, unknown>, kind?: TokenKind): string
  /** The ID token of an authorization, expired an hour ago. */
  idToken(session: TestSession, client: TestApplication, sid: string | undefined): string
  /** As a browser follows a link to it. */
  get(parameters: Values, session?: TestSession, headers?: Record<string, string>): Promise<Answer>
  post(path: string, form: Values, session?: TestSession, headers?: Record<string, string>): Promise<Answer>
  /** As a browser sends the form of our page. */
  submit(form: LogoutForm, session: TestSession, values?: Values, headers?: Record<string, string>): Promise<Answer>
  close(): Promise<void>
}

const unescaped = (text: string) => text.replaceAll('&amp;', '&').replaceAll('&#39;', "'").replaceAll('&quot;', '"')

/** Undefined when the page does not ask. */
export const formIn = ({ body }: Answer): LogoutForm | undefined => {
  const action = /<form [^>]*id="op\.logoutForm" [^>]*action="([^"]*)"/.exec(body)?.[1]
  const xsrf = /name="xsrf" value="([^"]*)"/.exec(body)?.[1]
  return action === undefined || xsrf === undefined ? undefined : { action: unescaped(action), xsrf }
}

export const location = ({ headers }: Answer): string | null => headers.get('location')

export const startLogoutTest = async (): Promise<LogoutTest> => {
  const keyEncryptionKey = randomBytes(32)
  const issuer = await startTestIssuer({ config: { keyEncryptionKey } })
  const envelope = createEnvelope({ current: keyEncryptionKey })
  const keys = await createSigningKeys({
    database: issuer.database,
    envelope,
    algorithm: 'ES256',
    logger: silentLogger,
  })
  const cookieOf = (session: TestSession | undefined): Record<string, string> =>
    session ? { cookie: `surrogate_session=${session.cookie}` } : {}
  const { origin } = new URL(issuer.baseUrl)

  const sign: LogoutTest['sign'] = (claims, kind = 'id') => {
    const { headers, sign } = keys.active()
    const input = `${headers[kind]}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
    return `${input}.${sign(input).toString('base64url')}`
  }
  const post: LogoutTest['post'] = (path, form, session, headers = {}) =>
    request(issuer.url + path, { method: 'POST', headers: { ...cookieOf(session), ...headers }, body: formOf(form) })

  return {
    issuer,
    sessions: createSessions(issuer),
    sign,
    post,
    async createClient({ name = 'The shop', type, uris = [returnUri] } = {}) {
      const client = await issuer.createApplication({ name, ...(type ? { type } : {}) })
      await issuer.sql('UPDATE applications SET oidc_client_metadata = $2 WHERE id = $1', [
        client.id,
        JSON.stringify({ redirectUris: [], postLogoutRedirectUris: uris }),
      ])
      return client
    },
    idToken(session, client, sid) {
      const iat = Math.floor(Date.now() / 1000) - 7_200
      return sign({ iss: issuer.issuer, sub: session.userId, aud: client.id, iat, exp: iat + 3_600, sid })
    },
    get: (parameters, session, headers = {}) =>
      request(`${issuer.url}${endSession}?${formOf(parameters)}`, { headers: { ...cookieOf(session), ...headers } }),
    submit: ({ action, xsrf }, session, values = { logout: 'yes' }, headers = { origin }) =>
      post(action, { xsrf, ...values }, session, headers),
    async close() {
      await keys.close()
      await issuer.close()
    },
  }
}
