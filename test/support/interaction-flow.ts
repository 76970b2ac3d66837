import { randomBytes } from 'node:crypto'
import { createTokenAudit } from '../../issuer/base/audit/token-audit.ts'
import { createCookies } from '../../issuer/base/cookies.ts'
import { createHmacs } from '../../issuer/base/hmac-keys-store.ts'
import { createSettings } from '../../issuer/directory/sign-in-experience/settings.ts'
import { readIdentifier } from '../../issuer/interaction/identifier.ts'
import { findInteraction, type Interaction } from '../../issuer/interaction/interaction-store.ts'
import { createInteractionOperations, type InteractionOperations } from '../../issuer/interaction/operations.ts'
import type { Visitor } from '../../issuer/interaction/visitor.ts'
import { systemClock } from '../../platform/clock.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { silentLogger } from '../../platform/logger.ts'
import { createCodeFlow } from './code-flow.ts'
import { startTestIssuer } from './issuer.ts'
import { localProviders } from './messages.ts'
import { createMessageReader } from './notices.ts'
import { passwords } from './shared-parts.ts'
import { createSignInParts } from './sign-in-parts.ts'

/** A sign-in that was begun at the issuer with a browser, and goes on by operations. */
export interface Flow {
  id: string
  visitor: Visitor & { browser: string }
  request: Parameters<InteractionOperations['finish']['proceed']>[2]
  /** As it stands. */
  now(): Promise<Interaction>
  proceed: (
    decision?: Parameters<InteractionOperations['finish']['proceed']>[3],
  ) => ReturnType<InteractionOperations['finish']['proceed']>
}

export interface FlowPerson {
  id: string
  username: string
  email: string
  password: string
}

interface Beginning {
  /** Of a browser that was here before. */
  cookies?: { session?: string; device?: string }
  userAgent?: string
  parameters?: Record<string, string>
  acceptLanguage?: string
}

/** An issuer, and what can be done in its interactions, also where no page offers it. `close()` it. */
export const startInteractionFlow = async ({ wake = () => {} }: { wake?: () => void } = {}) => {
  const keyEncryptionKey = randomBytes(32)
  const envelope = createEnvelope({ current: keyEncryptionKey })
  const events = { wake }
  const issuer = await startTestIssuer({
    config: { keyEncryptionKey, webhookTargets: { allowedNetworks: ['127.0.0.0/8'], allowHttp: true } },
    events,
  })
  const { database, baseUrl } = issuer
  const { query } = database
  const hmac = await createHmacs(database, envelope)
  const settings = await createSettings({ database, logger: silentLogger })
  const audit = createTokenAudit({ database, logger: silentLogger })
  const known = { database, envelope, hmac, audit, events, baseUrl }
  const operations = await createInteractionOperations({
    ...known,
    ...(await createSignInParts({
      ...{ ...known, logger: silentLogger, config: localProviders },
      senderOf: settings.sender,
      experience: settings.experience,
    })),
    cookies: createCookies({ secure: false }),
    issuer: issuer.issuer,
    sessionLimits: async () => settings.session(),
    passwords,
    settings: settings.experience,
    now: systemClock,
  })
  /** Changes `/api/sign-in-exp`. */
  const experience = async (patch: Record<string, unknown>) => {
    const { status, body } = await issuer.api('PATCH', '/sign-in-exp', patch)
    if (status !== 200) throw new Error(JSON.stringify(body))
    await settings.refreshed()
  }
  const mail = createMessageReader({ database, envelope, refreshed: () => experience({}) })
  const flow = createCodeFlow(issuer)
  let people = 0

  const begin = async (
    client: { id: string },
    {
      cookies = {},
      userAgent = 'Mozilla/5.0 (Windows NT 10.0) Firefox/140.0',
      parameters = {},
      acceptLanguage,
    }: Beginning = {},
  ): Promise<Flow> => {
    const browser = flow.browser()
    const page = await flow.ask(browser, client, parameters)
    const id = /\/sign-in\/([0-9a-z]{21})/.exec(page.url)?.[1]
    if (id === undefined) throw new Error(`no interaction: ${page.status} ${page.url}\n${page.text}`)
    const origin = { ip: '203.0.113.9', userAgent }
    const visitor = {
      ...{ session: cookies.session, device: cookies.device, browser: browser.cookies.get('surrogate_browser')! },
      ...{ origin, acceptLanguage, isEmbedded: false, signInContext: {} },
    }
    const path = `/sign-in/${id}`
    const request = {
      ...{ ...origin, method: 'POST', path, matchedRoute: '/sign-in/:id', params: { id }, status: 303 },
    }
    return {
      ...{ id, visitor, request },
      now: async () => (await findInteraction(query, id))!,
      proceed: (decision) => operations.finish.proceed(id, visitor, request, decision),
    }
  }

  const provePassword = async (begun: Flow, { username, password }: Pick<FlowPerson, 'username' | 'password'>) => {
    const attempt = await operations.passwords.prove(
      await begun.now(),
      begun.visitor,
      { identifier: readIdentifier(username)!, password, keep: false },
      begun.request,
    )
    if (attempt.outcome !== 'verified') throw new Error(attempt.outcome)
  }

  const proveAddress = async (begun: Flow, email: string, purpose: 'reset' | 'register' | 'bind' | 'sign_in') => {
    const identifier = readIdentifier(email)!
    const asked = { purpose, identifier, locale: 'en', tellsOwner: false }
    const sent = await operations.codes.send(await begun.now(), begun.visitor, asked, begun.request)
    if (sent.outcome !== 'sent') throw new Error(sent.outcome)
    const code = /\b\d{6}\b/.exec((await mail.waiting(email)).at(-1)!.text)![0]
    const answer = { proofId: sent.proofId, code }
    const attempt = await operations.codes.verify(await begun.now(), begun.visitor, answer, begun.request)
    if (attempt.outcome !== 'verified') throw new Error(attempt.outcome)
  }

  return {
    ...{ issuer, operations, mail, flow, envelope, begin, experience },
    password: provePassword,
    /** Proves a mail address by the code that comes there. */
    code: proveAddress,
    /** Somebody whose address is verified. */
    async createPerson(): Promise<FlowPerson> {
      const username = `person${++people}`
      const [email, password] = [`${username}@example.test`, 'a good password']
      const { body } = await issuer.api('POST', '/users', { username, primaryEmail: email, password })
      await issuer.sql('UPDATE users SET email_verified_at = now() WHERE id = $1', [body.id])
      return { id: body.id, username, email, password }
    },
    /** Begins, proves the password, and finishes. */
    async signIn(client: { id: string }, person: FlowPerson, options?: Beginning) {
      const begun = await begin(client, options)
      await provePassword(begun, person)
      return begun.proceed()
    },
    /** Sets another password by a code that comes to the address. */
    async reset(begun: Flow, email: string, password: string) {
      await operations.staging.begin(await begun.now(), 'ForgotPassword')
      await proveAddress(begun, email, 'reset')
      const staged = await operations.staging.password(await begun.now(), password)
      const { kind } = await begun.proceed()
      if (staged.outcome !== 'staged' || kind !== 'reset') throw new Error(`${staged.outcome}, ${kind}`)
    },
    /** What was recorded of an entity. */
    async eventsOf(entityId: string) {
      const rows = await issuer.sql<{ payload: Buffer }>(
        'SELECT payload FROM outbox WHERE entity_id = $1 ORDER BY version',
        [entityId],
      )
      return rows.map(({ payload }) => JSON.parse(payload.toString()))
    },
    /** A value of a cookie that finishing set. */
    cookieOf: (proceeded: Awaited<ReturnType<Flow['proceed']>>, name: 'session' | 'device'): string => {
      if (proceeded.kind !== 'redirect') throw new Error(proceeded.kind)
      const line = proceeded.redirect.setCookies.find((cookie) => cookie.startsWith(`surrogate_${name}=`))
      return line!.split(/[=;]/)[1]!
    },
    async close() {
      await settings.close()
      await audit.close()
      await issuer.close()
    },
  }
}

export type InteractionFlow = Awaited<ReturnType<typeof startInteractionFlow>>
