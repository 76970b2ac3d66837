import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { silentLogger } from '../../platform/logger.ts'
import type { ImpersonationInput } from '../../policies/impersonation.ts'
import { loadPolicies, shippedPolicies } from '../../policies/policy-set.ts'
import { type AuthorizationOptions, authorize, signIn } from './authorizations.ts'
import {
  type Answer,
  accessTokenType,
  request,
  startTestIssuer,
  type TestIssuer,
  type TestIssuerOptions,
} from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'
import { writeRules } from './rules.ts'

/** A customer with a password, whose account API they call. */
export interface Customer {
  id: string
  email: string
  token: string
  account(
    method: string,
    path: string,
    body?: unknown,
    options?: { verification?: string; token?: string },
  ): Promise<Answer>
  /** The id of a verification, made now: who they are, again. */
  verify(): Promise<string>
  /** Allows a request, with a fresh verification; the answer may be a refusal. */
  approve(asked: { requestId: string; number: string }, limits?: object): Promise<Answer>
}

/** An issuer that asks some customers before anybody acts as them. `close()` it. */
export interface AskedFirst {
  issuer: TestIssuer
  /** What the policy was asked with. */
  questions: ImpersonationInput[]
  /** An API with `read:orders` and `write:orders`. */
  orders: string
  /** Where support works: its backend mints, and it exchanges. */
  desk: TestApplication
  customer(options?: { isProtected?: boolean; name?: string }): Promise<Customer>
  /** The token of somebody of the staff who has signed in. */
  staff(options?: AuthorizationOptions & { name?: string }): Promise<{ id: string; sessionId: string; token: string }>
  mint(body: object, options?: { token?: string; instance?: number }): Promise<Answer>
  exchange(subjectToken: string, actorToken?: string, form?: Record<string, string>): Promise<Answer>
  close(): Promise<void>
}

const samples = ['approval_for_protected_customers']
export const password = 'a good password'

export const startAskedFirst = async (
  options: TestIssuerOptions = {},
  names: readonly string[] = samples,
): Promise<AskedFirst> => {
  const files = ['impersonation.rego', ...names.map((name) => `examples/impersonation/${name}.rego`)]
  const texts = await Promise.all(
    files.map(async (file) => [file.split('/').at(-1)!, await readFile(join(shippedPolicies, file), 'utf8')]),
  )
  const { folder, remove } = await writeRules(Object.fromEntries(texts))
  const loaded = await loadPolicies({ path: folder, logger: silentLogger })
  const questions: ImpersonationInput[] = []
  const set = {
    ...loaded,
    evaluate(entrypoint: string, input: unknown) {
      questions.push(input as ImpersonationInput)
      return loaded.evaluate(entrypoint, input)
    },
  }
  const issuer = await startTestIssuer({ ...options, policies: { current: () => set } })
  const orders = await issuer.createResource({ scopes: ['read:orders', 'write:orders'] })
  const desk = await issuer.createApplication({ name: 'Support desk' })
  const shop = await issuer.createApplication({ type: 'SPA', name: 'Shop' })
  await issuer.sql(
    `INSERT INTO roles (id, name, description, type) VALUES ('protected', 'protected-customer', 'x', 'User')`,
  )

  let last = 0
  const customer: AskedFirst['customer'] = async ({ isProtected = true, name = 'Carol' } = {}) => {
    const username = `customer${++last}`
    const primaryEmail = `${username}@example.test`
    const { id } = (await issuer.api('POST', '/users', { username, primaryEmail, password, name })).body
    await issuer.grantUser(id, orders, ['read:orders', 'write:orders'])
    if (isProtected) await issuer.sql(`INSERT INTO user_roles (user_id, role_id) VALUES ($1, 'protected')`, [id])
    const scopes = ['openid', 'profile', 'email', 'identities', 'offline_access']
    const token = (await (await authorize(issuer, shop, id, { scopes })).redeem()).body.access_token as string
    const account: Customer['account'] = (method, path, body, { verification, token: own = token } = {}) =>
      request(`${issuer.url}/api${path}`, {
        method,
        headers: {
          authorization: `Bearer ${own}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(verification !== undefined && { 'logto-verification-id': verification }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    const verify = async () => {
      const answer = await account('POST', '/verifications/password', { password })
      if (answer.status !== 201) throw new Error(`not verified: ${answer.status} ${JSON.stringify(answer.body)}`)
      return answer.body.verificationRecordId as string
    }
    return {
      ...{ id, email: primaryEmail, token, account, verify },
      approve: async ({ requestId, number }, limits = {}) =>
        account(
          'POST',
          `/my-account/impersonation-requests/${requestId}/approve`,
          { number, ...limits },
          { verification: await verify() },
        ),
    }
  }

  return {
    ...{ issuer, questions, orders, desk, customer },
    async staff({ name = 'Sam of Support', acr = 'urn:surrogate:acr:mfa', ...more } = {}) {
      const { id } = await issuer.createUser({ name })
      const sessionId = await signIn(issuer, id, { acr })
      const at = await authorize(issuer, shop, id, { sessionId, isOffline: false, ...more })
      return { id, sessionId, token: (await at.redeem()).body.access_token }
    },
    mint: (body, more) => issuer.api('POST', '/subject-tokens', body, more),
    exchange: (subjectToken, actorToken, form = {}) =>
      issuer.exchange(desk, subjectToken, {
        ...{ resource: orders, scope: 'read:orders write:orders' },
        ...(actorToken !== undefined && { actor_token: actorToken, actor_token_type: accessTokenType }),
        ...form,
      }),
    async close() {
      await issuer.close()
      await remove()
    },
  }
}
