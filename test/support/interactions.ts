import { randomBytes } from 'node:crypto'
import { openMessage } from '../../deliveries/messages/message.ts'
import { noMessages } from '../../deliveries/messages/settings.ts'
import type { EventRequest } from '../../events/outbox.ts'
import { createTokenAudit } from '../../issuer/base/audit/token-audit.ts'
import { createCookies } from '../../issuer/base/cookies.ts'
import { createHmacs, type Hmac } from '../../issuer/base/hmac-keys-store.ts'
import { insertOneTimeToken } from '../../issuer/directory/one-time-tokens/one-time-token-store.ts'
import {
  type SignInExperience,
  signInExperience,
} from '../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { createFactors, newTotpSecret, readTotpSecret } from '../../issuer/directory/users/factors/index.ts'
import { hotp, totpStep } from '../../issuer/directory/users/factors/totp.ts'
import type { PasswordHasher } from '../../issuer/directory/users/password.ts'
import { findAuthorizationClient } from '../../issuer/interaction/authorization-client-store.ts'
import type { AuthorizationRequest } from '../../issuer/interaction/authorization-request.ts'
import type { CodeRequest } from '../../issuer/interaction/code-proof.ts'
import type { Proceeded } from '../../issuer/interaction/finish.ts'
import { type Identifier, readIdentifier } from '../../issuer/interaction/identifier.ts'
import type { InteractionEventName, InteractionState } from '../../issuer/interaction/interaction-state.ts'
import { findInteraction, type Interaction } from '../../issuer/interaction/interaction-store.ts'
import { createInteractions } from '../../issuer/interaction/interactions.ts'
import { createInteractionOperations, type InteractionOperations } from '../../issuer/interaction/operations.ts'
import type { Step } from '../../issuer/interaction/step.ts'
import type { Visitor } from '../../issuer/interaction/visitor.ts'
import { sessionDefaults } from '../../issuer/tokens/sessions/session.ts'
import { tokenDigest } from '../../issuer/tokens/token-digest.ts'
import { createDatabase, type Database } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { newId, randomToken } from '../../platform/ids.ts'
import { createLogger, silentLogger } from '../../platform/logger.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { createFactories, type Factories } from './issuer-data.ts'
import { easyCaptcha } from './proof-of-work.ts'
import { passwords as hasher } from './shared-parts.ts'
import { createSignInParts } from './sign-in-parts.ts'

/** One interaction, as its browser sees it. Everything is read anew at each call. */
export interface Running {
  id: string
  visitor: Visitor & { browser: string }
  read(): Promise<Interaction>
  step(): Promise<Step>
  password(identifier: string, password: string): Promise<string>
  /** Sends a code and answers it, as the recipient would read it; undefined when there is nothing to read. */
  send(
    purpose: CodeRequest['purpose'],
    to: string | { type: 'email' | 'phone' },
    options?: { tellsOwner?: boolean },
  ): Promise<{ outcome: string; proofId: string; code: string | undefined }>
  /** Sends a code, and enters it. */
  code(purpose: CodeRequest['purpose'], to: string | { type: 'email' | 'phone' }): Promise<string>
  secondFactor(kind: 'totp' | 'backup_code', code: string): Promise<string>
  finish(decision?: InteractionState): Promise<Proceeded>
}

export interface TestInteractions extends Factories {
  test: TestDatabase
  database: Database
  /** Of each instance, with a pool of its own. */
  instances: readonly InteractionOperations[]
  operations: InteractionOperations
  request: EventRequest
  baseUrl: string
  /** How often something was held against what is stored. */
  counted: { passwords: number; codes: number; backupCodes: number; totp: number }
  logged(): string
  /** Members of the sign-in experience, for everybody from now on. */
  configure(settings: object): void
  createPerson(options?: { username?: string; email?: string; phone?: string }): Promise<{
    id: string
    username: string
    email: string
    password: string
  }>
  /** Gives the person an authenticator app. */
  giveTotp(userId: string): Promise<string>
  giveBackupCodes(userId: string): Promise<string[]>
  oneTimeToken(email: string): Promise<string>
  begin(options?: {
    event?: InteractionEventName
    instance?: number
    ip?: string
    device?: string
    session?: string
    request?: Partial<AuthorizationRequest>
  }): Promise<Running>
  /** What the last message to somebody says. */
  lastCode(): Promise<string | undefined>
  close(): Promise<void>
}

/** The code of an authenticator app; `steps` of 30 s later. */
export const totpCode = (secret: string, steps = 0): string =>
  hotp(readTotpSecret(secret)!, totpStep(new Date()) + steps)

/** Interactions without pages before them: what pages and the Experience API call. */
export const startTestInteractions = async ({
  instances: count = 1,
  settings = {},
  failingIdentifiers = easyCaptcha.failingIdentifiers,
  wrap = (database) => database,
}: {
  instances?: number
  settings?: object
  failingIdentifiers?: number
  /** The database as the operations see it. */
  wrap?: (database: Database) => Database
} = {}): Promise<TestInteractions> => {
  const test = await createTestDatabase()
  const sealed = createEnvelope({ current: randomBytes(32) })
  const counted = { passwords: 0, codes: 0, backupCodes: 0, totp: 0 }
  const envelope = {
    ...sealed,
    open(bytes: Uint8Array, context: string) {
      if (context.startsWith('totp-secret:')) counted.totp++
      return sealed.open(bytes, context)
    },
  }
  const lines: string[] = []
  const logger = createLogger({
    name: 'issuer',
    level: 'debug',
    destination: { write: (line: string) => void lines.push(line) },
  })
  const passwords: PasswordHasher = {
    ...hasher,
    verify(password, digest) {
      counted.passwords++
      return hasher.verify(password, digest)
    },
  }
  const cookies = createCookies({ secure: false })
  const baseUrl = 'http://localhost:3001'
  let experience: SignInExperience = signInExperience.schema.parse(settings)
  const closings: (() => Promise<void>)[] = []
  const running: { operations: InteractionOperations; database: Database }[] = []
  let hmacs: Hmac | undefined
  for (let left = count; left > 0; left--) {
    const own =
      running.length === 0 ? test.database : createDatabase({ connection: test.connection, logger: silentLogger })
    const database = wrap(own)
    const stored = await createHmacs(database, envelope)
    hmacs ??= stored
    const hmac: Hmac = (purpose, ...parts) => {
      if (purpose === 'verification-codes') counted.codes++
      if (purpose === 'backup-codes') counted.backupCodes++
      return stored(purpose, ...parts)
    }
    const audit = createTokenAudit({ database, logger })
    const known = { database, envelope, hmac, audit, events: { wake() {} }, baseUrl }
    const operations = await createInteractionOperations({
      ...{ ...known, passwords, cookies },
      ...(await createSignInParts({
        ...{ ...known, logger },
        config: { ...noMessages, outbox: 'nobody reads it' },
        experience: () => experience,
        captcha: { ...easyCaptcha, failingIdentifiers },
      })),
      settings: () => experience,
      issuer: `${baseUrl}/oidc`,
      sessionLimits: async () => sessionDefaults,
      now: () => new Date(),
    })
    running.push({ operations, database: own })
    closings.push(async () => {
      await audit.close()
      if (own !== test.database) await own.close()
    })
  }
  const { database } = test
  const factories = createFactories(database)
  const { sql } = factories
  const factors = createFactors({ envelope, hmac: hmacs! })
  const client = await factories.createApplication({ type: 'SPA', name: 'Shop' })
  const redirectUri = 'https://shop.example.test/callback'
  await sql('UPDATE applications SET oidc_client_metadata = $2 WHERE id = $1', [
    client.id,
    JSON.stringify({ redirectUris: [redirectUri] }),
  ])
  const interactions = createInteractions({
    ...{ database, cookies, interactionsPerAddress: 0 },
    ...running[0]!.operations,
    settings: () => experience,
    signInPagesOf: async () => null,
  })
  const request: EventRequest = {
    ...{ ip: '203.0.113.7', userAgent: 'a browser', method: 'POST', path: '/sign-in', matchedRoute: '/sign-in' },
    ...{ params: {}, status: 200 },
  }

  const lastCode = async () => {
    const [row] = await sql<{ id: string; sealed: Buffer }>(
      `SELECT id, sealed FROM messages WHERE sealed IS NOT NULL ORDER BY created_at DESC LIMIT 1`,
    )
    return row && openMessage(sealed, row.id, row.sealed).variables['code']
  }

  const begin: TestInteractions['begin'] = async ({
    event = 'SignIn',
    instance = 0,
    ip = '203.0.113.7',
    device,
    session,
    request: asked = {},
  } = {}) => {
    const { operations } = running[instance]!
    const checked: AuthorizationRequest = {
      ...{ clientId: client.id, redirectUri, responseMode: 'query', state: 'the state', scopes: ['openid'] },
      ...{ resourceScopes: {}, resources: [], prompts: [], uiLocales: [], acrValues: [], wantsOfflineAccess: false },
      ...asked,
    }
    const visiting: Visitor = {
      ...{ session, device, browser: undefined, acceptLanguage: 'en', isEmbedded: false, signInContext: { ip } },
      origin: { ip, userAgent: 'a browser' },
    }
    const begun = await interactions.begin(
      checked,
      (await findAuthorizationClient(database.query, client.id))!,
      visiting,
    )
    if (begun.kind !== 'page') throw new Error(`no page: ${begun.kind}`)
    const id = begun.location.split('/').at(-1)!
    const browser = /browser=([^;]+)/.exec(begun.setCookies.join())![1]!
    const visitor = { ...visiting, browser }
    const read = async () => {
      const found = await findInteraction(database.query, id)
      if (!found) throw new Error('there is no such interaction')
      return found
    }
    if (event !== 'SignIn') await operations.staging.begin(await read(), event)
    const recipient = (to: string | { type: 'email' | 'phone' }): CodeRequest['identifier'] =>
      typeof to === 'string' ? (readIdentifier(to) as Identifier) : to
    const send: Running['send'] = async (purpose, to, { tellsOwner = true } = {}) => {
      const [before] = await sql<{ total: number }>('SELECT count(*)::integer AS total FROM messages')
      const sent = await operations.codes.send(
        await read(),
        visitor,
        { purpose, identifier: recipient(to), locale: 'en', tellsOwner },
        request,
      )
      const [after] = await sql<{ total: number }>('SELECT count(*)::integer AS total FROM messages')
      return {
        outcome: sent.outcome,
        proofId: sent.outcome === 'sent' ? sent.proofId : '',
        code: after!.total > before!.total ? await lastCode() : undefined,
      }
    }
    return {
      ...{ id, visitor, read, send },
      step: async () => (await operations.standingOf(database.query, await read(), visitor)).step,
      async password(identifier, password) {
        const input = { identifier: readIdentifier(identifier)!, password }
        return (await operations.passwords.prove(await read(), visitor, input, request)).outcome
      },
      async code(purpose, to) {
        const { proofId, code, outcome } = await send(purpose, to)
        if (code === undefined) return outcome
        return (await operations.codes.verify(await read(), visitor, { proofId, code }, request)).outcome
      },
      async secondFactor(kind, code) {
        return (await operations.secondFactors.prove(await read(), visitor, { kind, code }, request)).outcome
      },
      finish: (decision) => operations.finish.proceed(id, visitor, request, decision),
    }
  }

  return {
    ...factories,
    ...{ test, database, request, baseUrl, counted, begin, lastCode },
    instances: running.map(({ operations }) => operations),
    operations: running[0]!.operations,
    logged: () => lines.join(''),
    configure(changed) {
      experience = signInExperience.schema.parse({ ...settings, ...changed })
    },
    async createPerson({ username, email, phone } = {}) {
      const { id } = await factories.createUser({ name: 'Ada Lovelace' })
      const person = {
        ...{ id, username: username ?? `ada_${id}`, email: email ?? `${id}@example.test` },
        password: `right password of ${id}`,
      }
      const { digest, algorithm } = await hasher.hash(person.password)
      await sql(
        `UPDATE users SET username = $2, primary_email = $3, primary_phone = $4, password_digest = $5,
           password_algorithm = $6, email_verified_at = now(), phone_verified_at = now() WHERE id = $1`,
        [id, person.username, person.email, phone ?? null, digest, algorithm],
      )
      return person
    },
    async giveTotp(userId) {
      const secret = newTotpSecret()
      await database.transaction((trx) => factors.bindTotp(trx, { userId, secret }))
      return secret
    },
    giveBackupCodes: (userId) => database.transaction((trx) => factors.replaceBackupCodes(trx, userId)),
    async oneTimeToken(email) {
      const token = randomToken()
      const row = { id: newId(), digest: tokenDigest('one-time-token', token), email, context: {}, expiresIn: 600 }
      await database.transaction((trx) => insertOneTimeToken(trx, row))
      return token
    },
    async close() {
      for (const close of closings.toReversed()) await close()
      await test.close()
    },
  }
}
