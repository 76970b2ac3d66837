import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromBase32 } from '../../../issuer/directory/users/factors/base32.ts'
import { type Flow, type InteractionFlow, startInteractionFlow } from '../../support/interaction-flow.ts'

/** What happens to an account on the way in, its owner hears of: once, and not when it did not happen. */

let flows: InteractionFlow
let client: { id: string }
beforeAll(async () => {
  flows = await startInteractionFlow()
  client = await flows.flow.createClient()
  await flows.mail.connect()
})
afterAll(() => flows.close())

const notices = async (email: string) =>
  (await flows.mail.waiting(email)).filter(({ type }) => type !== 'SignIn' && !/^(Forgot|Register|Bind)/.test(type))
const typesTo = async (email: string) => (await notices(email)).map(({ type }) => type)

test('a new browser is told by its name, in the language it speaks; a known one is not', async () => {
  const person = await flows.createPerson()
  const first = await flows.begin(client, { acceptLanguage: 'de' })
  await flows.password(first, person)
  const finished = await first.proceed()
  expect(await notices(person.email)).toMatchObject([
    { type: 'NewDevice', locale: 'de', text: expect.stringContaining('Firefox, Windows') },
  ])
  const again = await flows.begin(client, { cookies: { device: flows.cookieOf(finished, 'device') } })
  await flows.password(again, person)
  expect((await again.proceed()).kind).toBe('redirect')
  expect(await typesTo(person.email)).toEqual(['NewDevice'])
})

test('a sign-in that is sent twice tells once', async () => {
  const person = await flows.createPerson()
  const begun = await flows.begin(client)
  await flows.password(begun, person)
  const both = await Promise.all([begun.proceed(), begun.proceed()])
  expect(both.map(({ kind }) => kind)).toEqual(['redirect', 'redirect'])
  expect(await typesTo(person.email)).toEqual(['NewDevice'])
})

test('a sign-in that cannot be committed tells nothing', async () => {
  const person = await flows.createPerson()
  const begun = await flows.begin(client)
  await flows.password(begun, person)
  // The event comes after the notices.
  await flows.issuer.sql(`ALTER TABLE outbox ADD CONSTRAINT nothing CHECK (type <> 'PostSignIn') NOT VALID`)
  try {
    await expect(begun.proceed()).rejects.toThrow('nothing')
  } finally {
    await flows.issuer.sql('ALTER TABLE outbox DROP CONSTRAINT nothing')
  }
  expect(await typesTo(person.email)).toEqual([])
})

test('a password that is reset is told once', async () => {
  const person = await flows.createPerson()
  const begun = await flows.begin(client)
  await flows.reset(begun, person.email, 'quite another one')
  expect(await typesTo(person.email)).toEqual(['PasswordChanged'])
})

test('a factor that is added while signing in is named in words', async () => {
  await flows.experience({ mfa: { factors: ['Totp'], policy: 'PromptAtSignInAndSignUp' } })
  const person = await flows.createPerson()
  const begun = await flows.begin(client, { acceptLanguage: 'ja' })
  await flows.password(begun, person)
  await addTotp(begun)
  expect((await begun.proceed()).kind).toBe('redirect')
  const told = await notices(person.email)
  // Of one transaction: they have no order.
  expect(told.map(({ type }) => type).toSorted()).toEqual(['FactorAdded', 'NewDevice'])
  expect(told.find(({ type }) => type === 'FactorAdded')?.text).toContain('認証アプリ')
})

test('a backup code is told when it is used up, with those that are left, also when the sign-in goes no further', async () => {
  await flows.experience({ mfa: { factors: ['Totp', 'BackupCode'], policy: 'NoPrompt' } })
  const person = await flows.createPerson()
  const path = `/users/${person.id}/mfa-verifications`
  await flows.issuer.api('POST', path, { type: 'Totp' })
  const { codes } = (await flows.issuer.api('POST', path, { type: 'BackupCode' })).body as { codes: string[] }
  await flows.issuer.sql('DELETE FROM messages')
  const prove = async (begun: Flow, code: string) =>
    flows.operations.secondFactors.prove(await begun.now(), begun.visitor, { kind: 'backup_code', code }, begun.request)
  const begun = await flows.begin(client)
  await flows.password(begun, person)
  expect(await prove(begun, 'aaaaaaaaaa')).toEqual({ outcome: 'invalid_credentials' })
  expect(await typesTo(person.email)).toEqual([])
  // Two at once: one of them is right.
  const outcomes = await Promise.all([prove(begun, codes[0]!), prove(begun, codes[0]!)])
  expect(outcomes.filter(({ outcome }) => outcome === 'verified')).toHaveLength(1)
  expect(await notices(person.email)).toMatchObject([
    { type: 'BackupCodeUsed', text: expect.stringContaining('You have 9 left') },
  ])
  expect((await begun.proceed()).kind).toBe('redirect')
  expect((await typesTo(person.email)).toSorted()).toEqual(['BackupCodeUsed', 'NewDevice'])
})

test('the language of the settings counts where the browser names none, and alone where it is not to be asked', async () => {
  await flows.experience({ languageInfo: { autoDetect: true, fallbackLanguage: 'es' } })
  const localeFor = async (acceptLanguage?: string) => {
    const person = await flows.createPerson()
    const begun = await flows.begin(client, acceptLanguage === undefined ? {} : { acceptLanguage })
    await flows.password(begun, person)
    await begun.proceed()
    return (await notices(person.email))[0]?.locale
  }
  expect(await localeFor()).toBe('es')
  expect(await localeFor('fr')).toBe('fr')
  await flows.experience({ languageInfo: { autoDetect: false, fallbackLanguage: 'es' } })
  expect(await localeFor('fr')).toBe('es')
  const page = await fetch(`${flows.issuer.url}/sign-in`, { headers: { 'accept-language': 'fr' } })
  expect(await page.text()).toContain('lang="es"')
})

test('the address of signing in by itself leads where the settings say', async () => {
  const bare = () => fetch(`${flows.issuer.url}/sign-in`, { redirect: 'manual' })
  expect((await bare()).status).toBe(400)
  await flows.experience({ unknownSessionRedirectUrl: 'https://shop.example.test/start' })
  // The issuer itself learns of it at the latest within a second.
  await expect.poll(async () => (await bare()).headers.get('location')).toBe('https://shop.example.test/start')
})

const addTotp = async (begun: Flow) => {
  const { enrolment } = flows.operations
  const begunTotp = await enrolment.totp(await begun.now(), { issuer: 'Test', account: 'ada' })
  const { proofId, secret } = begunTotp!
  const answer = { proofId, code: await codeOf(secret) }
  expect(await enrolment.confirmTotp(await begun.now(), answer)).toBe(true)
}

/** RFC 6238, by itself. */
const codeOf = async (secret: string): Promise<string> => {
  const key = await crypto.subtle.importKey(
    'raw',
    new Uint8Array(fromBase32(secret)!),
    { name: 'HMAC', hash: 'SHA-1' },
    false,
    ['sign'],
  )
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)))
  const digest = Buffer.from(await crypto.subtle.sign('HMAC', key, counter))
  const number = digest.readUInt32BE(digest.at(-1)! & 15) & 0x7fffffff
  return String(number % 1_000_000).padStart(6, '0')
}
