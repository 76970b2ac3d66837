import { createHmac, randomBytes } from 'node:crypto'
import { openMessage } from '../../deliveries/messages/message.ts'
import { noMessages } from '../../deliveries/messages/settings.ts'
import { experienceDocument } from '../../issuer/api/openapi/experience.ts'
import type { IssuerConfig } from '../../issuer/config.ts'
import {
  type SignInExperience,
  signInExperience,
} from '../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import {
  createFactors,
  registrationCredential,
  relyingPartyOf,
  verifyRegistration,
} from '../../issuer/directory/users/factors/index.ts'
import { createEnvelope, type Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import type { PolicySet } from '../../policies/policy-set.ts'
import { type Authenticator, createAuthenticator } from '../../testing/authenticator.ts'
import { createRequests } from '../issuer/api/openapi-requests.ts'
import { type Browser, createBrowser, type Visit } from './browser.ts'
import { type CodeFlow, createCodeFlow } from './code-flow.ts'
import { createTestDatabase } from './database.ts'
import { type Answer, type FormValues, startTestIssuer, type TestIssuer } from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'
import { easyCaptcha } from './proof-of-work.ts'

/** Pages of signing in that are not ours, as far as the Experience API sees them: one browser with one sign-in. */
export interface ExperiencePages {
  browser: Browser
  /** Where the authorization request led. */
  begun: Visit
  interactionId: string
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  put(path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  post(path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  get(path: string, options?: CallOptions): Promise<Answer>
  /** `/submit`, and where the browser gets by it: the parameters of the redirect to the client. */
  finish(options?: CallOptions): Promise<Record<string, string>>
}

export interface CallOptions {
  headers?: Record<string, string>
  instance?: number
}

export interface ExperiencePerson {
  id: string
  username: string
  email: string
  phone: string
  password: string
}

export interface TestExperience {
  issuer: TestIssuer
  flow: CodeFlow
  /** Seals what the issuer stores. */
  envelope: Envelope
  client: TestApplication
  /** What the issuer takes for the time, in ms; TOTP steps follow it. */
  clock: { now: number }
  pages(options?: { browser?: Browser; parameters?: FormValues; client?: TestApplication }): Promise<ExperiencePages>
  /** With a password, and, unless it has no addresses, with a mail address and a phone that are verified. */
  createPerson(options?: { isSuspended?: boolean; hasAddresses?: boolean }): Promise<ExperiencePerson>
  /** Base32, of a new authenticator app of the person. */
  addTotp(person: { id: string }): Promise<string>
  addBackupCodes(person: { id: string }): Promise<string[]>
  /** An authenticator with a passkey of the person. */
  addPasskey(person: { id: string }): Promise<Authenticator>
  /** Of this moment; `steps` of 30 s later. */
  totp(secret: string, steps?: number): string
  /** What was sent to an address, the newest last. */
  messagesTo(
    address: string,
  ): Promise<{ type: string; code: string | undefined; text: string; html: string | undefined }[]>
  /** The newest code that was sent there. */
  codeTo(address: string): Promise<string>
  authenticator(): Authenticator
  events(type: string): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

const decodeBase32 = (text: string): Buffer => {
  const bits = [...text].map((letter) => base32.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Buffer.from(bits.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)))
}

/** RFC 6238, by itself: nothing of it is the issuer's. */
const totpOf = (secret: string, step: number): string => {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', decodeBase32(secret)).update(counter).digest()
  const offset = mac.at(-1)! & 15
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

const withCodes = (['username', 'email', 'phone'] as const).map((identifier) => ({
  ...{ identifier, password: true, isPasswordPrimary: true },
  verificationCode: identifier !== 'username',
}))

const document = createRequests(experienceDocument({ baseUrl: 'https://issuer.test' }))

const matches = (documented: string, path: string) =>
  new RegExp(`^${documented.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path)

/** Throws for an answer of a documented operation that is not as documented: every test of the API is one of this. */
const requireDocumented = (method: string, path: string, answer: Answer) => {
  const operation = document.operations.find(
    (known) => known.method === method && matches(known.path, path.split('?', 1)[0] || '/'),
  )
  // After a reset of a password there is nothing to go on to.
  if (!operation || (path === '/submit' && answer.status === 200 && answer.body === '')) return
  const body = answer.body === '' ? undefined : answer.body
  const found = document.deviation(operation, { ...answer, body })
  if (found !== undefined) throw new Error(`${method} ${path} is not as documented: ${found}`)
}

/** An issuer with these settings, that keeps its messages to itself. Codes are allowed unless the settings say no. */
export const startExperience = async ({
  settings = {},
  instances = 1,
  config = {},
  policies,
}: {
  settings?: Partial<SignInExperience>
  instances?: number
  config?: Partial<IssuerConfig>
  /** Of the operator. Default: the shipped rules decide. */
  policies?: PolicySet
} = {}): Promise<TestExperience> => {
  const test = await createTestDatabase()
  const experience = signInExperience.schema.parse({ signIn: { methods: withCodes }, ...settings })
  await test.database.knex('settings').insert({ name: signInExperience.name, value: JSON.stringify(experience) })
  const keyEncryptionKey = randomBytes(32)
  const clock = { now: Date.now() }
  const issuer = await startTestIssuer({
    ...{ instances, test, now: () => new Date(clock.now) },
    ...(policies && { policies: { current: () => policies } }),
    config: {
      keyEncryptionKey,
      // Nobody reads the file: the messages stay where they are.
      messages: { ...noMessages, outbox: '/dev/null' },
      trustedProxies: ['127.0.0.0/8'],
      captcha: easyCaptcha,
      ...config,
    },
  })
  const envelope = createEnvelope({ current: keyEncryptionKey })
  const flow = createCodeFlow(issuer)
  const client = await flow.createClient()
  const { origin } = new URL(issuer.baseUrl)

  const messagesTo: TestExperience['messagesTo'] = async (address) => {
    const rows = await issuer.sql<{ id: string; type: string; sealed: Buffer | null }>(
      'SELECT id, type, sealed FROM messages ORDER BY created_at, id',
    )
    return rows.flatMap(({ id, type, sealed }) => {
      const message = sealed && openMessage(envelope, id, sealed)
      if (!message || message.to.replace(/^\+/, '') !== address) return []
      return [{ type, code: message.variables['code'], text: message.text, html: message.html }]
    })
  }

  const pages: TestExperience['pages'] = async ({ browser = createBrowser(issuer.baseUrl), ...asked } = {}) => {
    const begun = await browser.send(flow.authorizationUrl(asked.client ?? client, { prompt: '', ...asked.parameters }))
    const interactionId = /[0-9a-z]{21}$/.exec(new URL(begun.location ?? issuer.baseUrl).pathname)?.[0] ?? ''
    // An address of its own: what others fail at counts for nothing here.
    const address = `2001:db8:${randomBytes(2).toString('hex')}:${randomBytes(2).toString('hex')}::1`
    const call: ExperiencePages['call'] = async (method, path, body, { headers = {}, instance = 0 } = {}) => {
      const visit = await browser.send(`${issuer.urls[instance]}/api/experience${path}`, {
        method,
        headers: {
          ...{ origin, 'surrogate-interaction': interactionId, 'x-forwarded-for': address },
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const isJson = /json/.test(visit.headers.get('content-type') ?? '')
      const read = isJson ? JSON.parse(visit.text) : visit.text
      const answer = { status: visit.status, headers: visit.headers, body: read }
      requireDocumented(method, path, answer)
      return answer
    }
    const post: ExperiencePages['post'] = (path, body, options) => call('POST', path, body, options)
    return {
      ...{ browser, begun, interactionId, call, post },
      put: (path, body, options) => call('PUT', path, body, options),
      get: (path, options) => call('GET', path, undefined, options),
      async finish(options) {
        let submitted = await post('/submit', undefined, options)
        if (submitted.body.code === 'user.passkey_preferred') {
          await post('/profile/mfa/passkey-skipped', undefined, options)
          submitted = await post('/submit', undefined, options)
        }
        if (submitted.status !== 200) throw new Error(`${submitted.status} ${JSON.stringify(submitted.body)}`)
        const { location } = await browser.send(submitted.body.redirectTo)
        return Object.fromEntries(new URL(location ?? 'about:blank').searchParams)
      },
    }
  }

  return {
    ...{ issuer, flow, envelope, client, clock, pages, messagesTo },
    async createPerson({ isSuspended = false, hasAddresses = true } = {}) {
      const made = await flow.createPerson()
      const email = `${made.id}@example.test`
      const phone = `49151${String(Math.floor(Math.random() * 1e8)).padStart(8, '0')}`
      await issuer.sql(
        `UPDATE users SET primary_email = $2, primary_phone = $3, email_verified_at = now(), phone_verified_at = now(),
           is_suspended = $4 WHERE id = $1`,
        [made.id, hasAddresses ? email : null, hasAddresses ? phone : null, isSuspended],
      )
      return { ...made, email, phone }
    },
    async addTotp({ id }) {
      const { body } = await issuer.api('POST', `/users/${id}/mfa-verifications`, { type: 'Totp' })
      return body.secret
    },
    async addBackupCodes({ id }) {
      const { body } = await issuer.api('POST', `/users/${id}/mfa-verifications`, { type: 'BackupCode' })
      return body.codes
    },
    async addPasskey({ id }) {
      const device = createAuthenticator({ origin })
      const [challenge, userHandle] = [randomBytes(32).toString('base64url'), randomBytes(32)]
      const relyingParty = relyingPartyOf(issuer.baseUrl)
      const user = { id: userHandle.toString('base64url') }
      const made = device.create({ rp: relyingParty, user, challenge, pubKeyCredParams: [{ alg: -7 }] })
      const { verified } = verifyRegistration(registrationCredential.parse(made), { challenge, relyingParty })
      const factors = createFactors({ envelope, hmac: () => randomBytes(32) })
      await issuer.database.transaction((trx) =>
        factors.bindPasskey(trx, { userId: id, userHandle, credential: verified! }),
      )
      return device
    },
    totp: (secret, steps = 0) => totpOf(secret, Math.floor(clock.now / 30_000) + steps),
    async codeTo(address) {
      const codes = (await messagesTo(address)).flatMap(({ code }) => code ?? [])
      const last = codes.at(-1)
      if (last === undefined) throw new Error(`no code was sent to ${address}`)
      return last
    },
    authenticator: () => createAuthenticator({ origin }),
    async events(type) {
      const rows = await issuer.sql<{ payload: Buffer }>('SELECT payload FROM outbox WHERE type = $1 ORDER BY seq', [
        type,
      ])
      return rows.map(({ payload }) => JSON.parse(payload.toString()))
    },
    close: () => issuer.close(),
  }
}

/** A name that nobody has. */
export const freshName = (): string => `n_${newId(10)}`
