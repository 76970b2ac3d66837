import { accountRoutes } from '../../issuer/account/api/index.ts'
import { accountDocument } from '../../issuer/api/openapi/account.ts'
import { routesFor } from '../../issuer/base/route.ts'
import { createRequests } from '../issuer/api/openapi-requests.ts'
import { type ExperiencePerson, startExperience, type TestExperience } from './experience.ts'
import { type Answer, request } from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'

/** An application in which somebody has signed in, as far as the Account API sees it. */
export interface SignedInApplication {
  token: string
  refreshToken: string | undefined
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  get(path: string, options?: CallOptions): Promise<Answer>
  post(path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  patch(path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  delete(path: string, options?: CallOptions): Promise<Answer>
  /** The id of a verification by the password. */
  verify(): Promise<string>
  /** Who still has what it got: 200, or 401 when the authorization has ended. */
  userinfo(): Promise<number>
}

export interface CallOptions {
  verification?: string | undefined
  headers?: Record<string, string>
  instance?: number
}

export interface TestAccount {
  experience: TestExperience
  createPerson: TestExperience['createPerson']
  /** Signs in anew, in a browser of its own, and gets an opaque token. */
  signIn(
    person: ExperiencePerson,
    options?: { scope?: string; client?: TestApplication; totp?: string },
  ): Promise<SignedInApplication>
  /** The names and data of what was recorded about a user, in order. */
  eventsOf(userId: string): Promise<{ type: string; data: unknown }[]>
  close(): Promise<void>
}

export const allScopes = 'openid offline_access profile email phone address identities custom_data'

/** None of them is called: only their shapes are read. */
const shapes = routesFor('account', accountRoutes({} as never))
const document = createRequests(accountDocument({ routes: shapes, baseUrl: 'https://issuer.test' }))

const matches = (template: string, path: string) =>
  new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path)

/** Throws for an answer of a documented operation that is not as documented. */
const requireDocumented = (method: string, path: string, answer: Answer) => {
  const known = document.operations.filter((one) => one.method === method)
  const operation = known.find((one) => one.path === path) ?? known.find((one) => matches(one.path, path))
  if (!operation) return
  const body = answer.body === '' ? undefined : answer.body
  const found = document.deviation(operation, { ...answer, body })
  if (found !== undefined) throw new Error(`${method} ${path} is not as documented: ${found}`)
}

/** An issuer with people who look after their accounts. Factors of their own are enabled. */
export const startAccount = async (options: Parameters<typeof startExperience>[0] = {}): Promise<TestAccount> => {
  const experience = await startExperience({
    ...options,
    settings: {
      mfa: { factors: ['Totp', 'WebAuthn', 'BackupCode'], policy: 'NoPrompt' },
      ...options.settings,
    },
  })
  const { issuer, flow } = experience

  const applicationOf = (person: ExperiencePerson, token: string, refreshToken?: string): SignedInApplication => {
    const call: SignedInApplication['call'] = async (method, path, body, called = {}) => {
      const { verification, headers = {}, instance = 0 } = called
      const answer = await request(`${issuer.urls[instance]}/api${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(verification !== undefined && { 'logto-verification-id': verification }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      requireDocumented(method, path, answer)
      return answer
    }
    return {
      ...{ token, refreshToken, call },
      get: (path, called) => call('GET', path, undefined, called),
      post: (path, body, called) => call('POST', path, body, called),
      patch: (path, body, called) => call('PATCH', path, body, called),
      delete: (path, called) => call('DELETE', path, undefined, called),
      async verify() {
        const { status, body } = await call('POST', '/verifications/password', { password: person.password })
        if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
        return body.verificationRecordId
      },
      userinfo: () => flow.userinfo(token),
    }
  }

  return {
    experience,
    createPerson: (how) => experience.createPerson(how),
    async signIn(person, { scope = allScopes, client = experience.client, totp } = {}) {
      const pages = await experience.pages({ client, parameters: { scope, prompt: 'consent' } })
      await pages.put('', { interactionEvent: 'SignIn' })
      const proven = await pages.post('/verification/password', {
        identifier: { type: 'username', value: person.username },
        password: person.password,
      })
      await pages.post('/identification', proven.body)
      if (totp !== undefined) await pages.post('/verification/totp/verify', { code: totp })
      const { code } = await pages.finish()
      const { status, body } = await flow.redeem(client, code!)
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
      return applicationOf(person, body.access_token, body.refresh_token)
    },
    async eventsOf(userId) {
      const rows = await issuer.sql<{ type: string; payload: Buffer }>(
        `SELECT type, payload FROM outbox WHERE entity_kind = 'user' AND entity_id = $1 ORDER BY seq`,
        [userId],
      )
      return rows.map(({ type, payload }) => ({ ...JSON.parse(payload.toString()), type }))
    },
    close: () => experience.close(),
  }
}
