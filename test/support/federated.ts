import { noMessages } from '../../deliveries/messages/settings.ts'
import {
  createIdentityProviderStore,
  type NewIdentityProvider,
} from '../../issuer/connectors/providers/identity-provider-store.ts'
import type { SignInExperience } from '../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { newId } from '../../platform/ids.ts'
import type { Browser, Visit } from './browser.ts'
import { parametersOf } from './code-flow.ts'
import { type ExperiencePerson, startExperience, type TestExperience } from './experience.ts'
import { type IdentityProvider, startIdentityProvider } from './identity-provider.ts'
import type { FormValues } from './issuer.ts'

/** An issuer whose people come by an identity provider, and that provider, which can be hostile. `close()` it. */
export interface TestFederatedSignIn extends TestExperience {
  provider: IdentityProvider
  /** Of the provider: `social` by the target `acme`, `enterprise` for the domain `corp.example`. */
  social: string
  enterprise: string
  /** One more connector. Answers its id. */
  connect(provider: IdentityProvider, row?: Partial<NewIdentityProvider>): Promise<string>
  /** The sign-in page. */
  ask(browser: Browser, parameters?: FormValues): Promise<Visit>
  /** Presses the button of a connector: where the browser is sent. */
  press(browser: Browser, page: Visit, connectorId?: string): Promise<string>
  /** What the provider answers to that, brought back by the browser. */
  comeBack(browser: Browser, url: string, change?: (back: URL) => void): Promise<Visit>
  /** All of it, from the sign-in page on. */
  signIn(browser: Browser, options?: { connectorId?: string; parameters?: FormValues }): Promise<Visit>
  /** The claims of the ID token that a sign-in led to. */
  claimsOf(visit: Visit): Promise<Record<string, unknown>>
  users(): Promise<Record<string, unknown>[]>
  identitiesOf(userId: string): Promise<{ target: string; subject: string }[]>
  personWith(email: string, options?: { isVerified?: boolean }): Promise<ExperiencePerson>
  configure(settings: Partial<SignInExperience>): Promise<void>
}

export const startFederatedSignIn = async (
  settings: Partial<SignInExperience> = {},
  { instances = 1 }: { instances?: number } = {},
): Promise<TestFederatedSignIn> => {
  const experience = await startExperience({
    instances,
    config: { messages: { ...noMessages, outbox: '/dev/null', allowedNetworks: ['127.0.0.0/8'] } },
    settings: { socialSignInConnectorTargets: ['acme'], singleSignOnEnabled: true, ...settings },
  })
  const { issuer, flow, client } = experience
  const provider = await startIdentityProvider()
  const store = createIdentityProviderStore(experience.envelope)
  const { query } = issuer.database

  const connect: TestFederatedSignIn['connect'] = async ({ issuer: url, clientId, clientSecret }, row = {}) => {
    const id = newId()
    const { kind = 'social' } = row
    const config = { issuer: url, clientId, clientSecret }
    const named =
      kind === 'sso' ? { name: id, target: null, provider: 'OIDC' } : { name: null, target: id, provider: 'oidc' }
    await store.insert(query, { id, kind, ...named, config, domains: [], syncProfile: false, look: {}, ...row })
    return id
  }
  const social = await connect(provider, { target: 'acme', look: { name: 'Acme' } })
  const enterprise = await connect(provider, { kind: 'sso', name: 'Corp', domains: ['corp.example'] })

  const ask: TestFederatedSignIn['ask'] = (browser, parameters) =>
    flow.ask(browser, client, { prompt: '', ...parameters })
  const press: TestFederatedSignIn['press'] = async (browser, page, connectorId = social) => {
    const sent = await browser.submit(page, { choice: `provider:${connectorId}` }, { with: 'choice', follow: false })
    if (!sent.location) throw new Error(`${sent.status} ${sent.text}`)
    return sent.location
  }
  const comeBack: TestFederatedSignIn['comeBack'] = async (browser, url, change = () => {}) => {
    const back = await provider.signIn(url)
    change(back)
    return browser.get(back.href)
  }

  return {
    ...experience,
    ...{ provider, social, enterprise, connect, ask, press, comeBack },
    signIn: async (browser, { connectorId, parameters } = {}) =>
      comeBack(browser, await press(browser, await ask(browser, parameters), connectorId)),
    async claimsOf(visit) {
      const { code } = parametersOf(visit)
      if (code === undefined) throw new Error(`no code: ${visit.location}`)
      const { body } = await flow.redeem(client, code)
      return JSON.parse(Buffer.from(body.id_token.split('.')[1], 'base64url').toString())
    },
    users: () => issuer.sql('SELECT * FROM users ORDER BY created_at'),
    identitiesOf: (userId) =>
      issuer.sql(
        `SELECT target, subject FROM user_identities WHERE user_id = $1
         UNION ALL SELECT provider_id, subject FROM user_sso_identities WHERE user_id = $1`,
        [userId],
      ),
    async personWith(email, { isVerified = true } = {}) {
      const person = await experience.createPerson()
      await issuer.sql(
        'UPDATE users SET primary_email = $2, email_verified_at = CASE WHEN $3 THEN now() END WHERE id = $1',
        [person.id, email, isVerified],
      )
      return { ...person, email }
    },
    async configure(patch) {
      const { status, body } = await issuer.api('PATCH', '/sign-in-exp', patch)
      if (status !== 200) throw new Error(JSON.stringify(body))
    },
    async close() {
      await experience.close()
      await provider.close()
    },
  }
}
