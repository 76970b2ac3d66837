import * as openid from 'openid-client'
import { request } from 'undici'
import { z } from 'zod'
import { actingPage, askPage, waitingPage } from './support-pages.ts'

/**
 * How support acts for a customer, as an integrator would write it: the backend asks the Management API for a subject
 * token, waits while the customer is asked, and exchanges it for a token that says who acts for whom.
 */
export interface SupportDesk {
  /** Begins: with a subject token at once, or by asking the customer. Resolves to what to say when it did not work. */
  ask(desk: Desk, who: Staff, form: URLSearchParams): Promise<string | undefined>
  /** What support sees now; goes on once the customer has agreed. */
  page(desk: Desk): Promise<string>
  /** Whether the customer has answered, or is asked nothing. */
  isAnswered(desk: Desk): Promise<boolean>
  stop(desk: Desk): Promise<void>
}

/** What support does in one browser. */
export interface Desk {
  waiting?: Waiting | undefined
  acting?: Acting | undefined
}

interface Staff {
  id: string
  name: string
  /** An access token of theirs with `openid`, for no API: it proves who acts. */
  actorToken: string
}
interface Case {
  staff: Staff
  customer: string
  reason: string
}
interface Waiting extends Case {
  requestId: string
  number: string
  /** Under way: a subject token is given once, so two tabs that ask at the same time ask together. */
  goingOn?: Promise<string | undefined> | undefined
}
interface Acting extends Case {
  accessToken: string
}

export interface SupportSettings {
  /** The application that staff signs in to; it may exchange tokens. */
  application: openid.Configuration
  /** Of an application that may call the Management API, with the scopes `impersonation` and `users`. */
  backend: { clientId: string; clientSecret: string }
  /** Base URL of the Management API, which is its resource too. */
  managementApi: string
  gatewayUrl: string
  ordersResource: string
}

const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'
const scopes = ['read:orders']

export const createSupportDesk = (settings: SupportSettings): SupportDesk => {
  const { application, managementApi, gatewayUrl, ordersResource: resource } = settings
  const { clientId, clientSecret } = settings.backend
  const backend = new openid.Configuration(application.serverMetadata(), clientId, clientSecret)
  // As for the application.
  openid.allowInsecureRequests(backend)

  const accountPage = new URL('/account/impersonations', managementApi).href

  // A token for every call keeps this short; a backend with more to do keeps it until it expires.
  const manage = async (path: string, body?: object) => {
    const parameters = { resource: managementApi, scope: 'impersonation users' }
    const { access_token } = await openid.clientCredentialsGrant(backend, parameters)
    const answer = await request(`${managementApi}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
      body: body ? JSON.stringify(body) : null,
    })
    return { status: answer.statusCode, body: await answer.body.json() }
  }

  const findCustomer = async (username: string) => {
    const query = new URLSearchParams({ 'search.username': username, 'mode.username': 'exact' })
    return users.parse((await manage(`/users?${query}`)).body)[0]
  }

  const exchange = async (subjectToken: string, { staff, customer, reason }: Case): Promise<Acting> => {
    const { access_token: accessToken } = await openid.genericGrantRequest(
      application,
      'urn:ietf:params:oauth:grant-type:token-exchange',
      {
        ...{ subject_token: subjectToken, subject_token_type: accessTokenType },
        ...{ actor_token: staff.actorToken, actor_token_type: accessTokenType },
        ...{ resource, scope: scopes.join(' ') },
      },
    )
    return { staff, customer, reason, accessToken }
  }

  const goOn = async (desk: Desk, waiting: Waiting): Promise<string | undefined> => {
    const { status, body } = await manage('/subject-tokens', { requestId: waiting.requestId })
    if (status === 201) {
      const acting = await exchange(minted.parse(body).subjectToken, waiting)
      if (desk.waiting === waiting) desk.acting = acting
      // Somebody gave up meanwhile.
      else await openid.tokenRevocation(application, acting.accessToken)
    }
    const { data, message } = status === 201 ? {} : refusal.parse(body)
    if (data?.status === 'pending') return
    if (desk.waiting === waiting) desk.waiting = undefined
    return data?.status === 'refused' ? `${waiting.customer} does not want it.` : message
  }

  const actAs = async (desk: Desk, { staff, customer, reason, accessToken }: Acting): Promise<string> => {
    const answer = await request(`${gatewayUrl}/orders`, { headers: { authorization: `Bearer ${accessToken}` } })
    const body = await answer.body.text()
    // RFC 7662 and RFC 8693 §4.1: what the issuer says of the token, not what was asked for.
    const { active, act } = introspection.parse(await openid.tokenIntrospection(application, accessToken))
    const { statusCode: status } = answer
    if (status !== 401 && active && act)
      return actingPage({ actor: act.sub === staff.id ? staff.name : act.sub, customer, reason, status, body })
    desk.acting = undefined
    const why = status === 401 ? ' The gateway answered 401: it takes the token no longer.' : ''
    return askPage(`You act for ${customer} no longer: they have ended it, or its time is over.${why}`)
  }

  return {
    async ask(desk, staff, form) {
      const [username = '', reason = ''] = [form.get('username')?.trim(), form.get('reason')?.trim()]
      if (username === '' || reason === '') return 'Say for whom, and why.'
      const found = await findCustomer(username)
      if (!found) return `There is no customer ${username}.`
      const { actorToken } = staff
      const answer = await manage('/subject-tokens', { userId: found.id, actorToken, reason, resource, scopes })
      const one = { staff, customer: found.name ?? username, reason }
      if (answer.status === 201) desk.acting = await exchange(minted.parse(answer.body).subjectToken, one)
      else if (answer.status === 202) desk.waiting = { ...one, ...pending.parse(answer.body) }
      else return refusal.parse(answer.body).message
    },
    async page(desk) {
      const { waiting } = desk
      if (waiting) {
        waiting.goingOn ??= goOn(desk, waiting).finally(() => {
          waiting.goingOn = undefined
        })
      }
      const note = await waiting?.goingOn
      if (desk.acting) return actAs(desk, desk.acting)
      return desk.waiting ? waitingPage({ ...desk.waiting, accountPage }) : askPage(note)
    },
    async isAnswered({ waiting }) {
      if (!waiting) return true
      return asked.parse((await manage(`/impersonation-requests/${waiting.requestId}`)).body).status !== 'pending'
    },
    async stop(desk) {
      const { acting } = desk
      desk.acting = undefined
      desk.waiting = undefined
      if (acting) await openid.tokenRevocation(application, acting.accessToken)
    },
  }
}

const users = z.array(z.object({ id: z.string(), name: z.string().nullish() }))
const minted = z.object({ subjectToken: z.string() })
const asked = z.object({ status: z.string() })
const refusal = z.object({ message: z.string(), data: z.object({ status: z.string().optional() }).nullish() })
const pending = z.object({ requestId: z.string(), number: z.string() })
const introspection = z.object({ active: z.boolean(), act: z.object({ sub: z.string() }).optional() })
