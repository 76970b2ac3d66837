import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  authenticationCredential,
  readTotpSecret,
  registrationCredential,
} from '../../../issuer/directory/users/factors/index.ts'
import type { Proceeded } from '../../../issuer/interaction/finish.ts'
import { readIdentifier } from '../../../issuer/interaction/identifier.ts'
import { createAuthenticator } from '../../../testing/authenticator.ts'
import { findInClear, type Secret } from '../../support/clear-text.ts'
import { type Running, startTestInteractions, type TestInteractions, totpCode } from '../../support/interactions.ts'

let home: TestInteractions
beforeAll(async () => {
  home = await startTestInteractions({
    settings: {
      signUp: { identifiers: ['email'], password: true, verify: true },
      signIn: {
        methods: [
          { identifier: 'username', password: true, verificationCode: false, isPasswordPrimary: true },
          { identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: true },
        ],
      },
      mfa: { factors: ['Totp', 'BackupCode', 'WebAuthn', 'EmailVerificationCode'], policy: 'NoPrompt' },
      passkeySignIn: { enabled: true },
    },
  })
})
afterAll(() => home.close())

const email = 'grace.of.the.run@example.test'

test('nothing that opens something stands in clear in the database, in logs, events, audit or errors after everything was done', async () => {
  const secrets: Secret[] = []
  const errors: string[] = []
  const keep = (name: string, value: string | undefined, bytes?: Uint8Array) => {
    if (value === undefined) throw new Error(`no ${name}`)
    secrets.push({ name, value, bytes })
    return value
  }
  const { operations, request } = home
  const begin = async (options?: Parameters<typeof home.begin>[0]): Promise<Running> => {
    const running = await home.begin(options)
    keep('browser cookie', running.visitor.browser)
    return running
  }
  const finished = async (running: Running) => {
    const proceeded: Proceeded = await running.finish()
    if (proceeded.kind !== 'redirect') throw new Error(`${proceeded.kind}: ${JSON.stringify(await running.step())}`)
    const { response, setCookies } = proceeded.redirect
    for (const line of setCookies) keep(line.split('=')[0]!, /=([^;]+)/.exec(line)![1])
    keep(
      'code of the authorization',
      /"code":"([^"]+)"|[?&]code=([^&"]+)/.exec(JSON.stringify(response))?.slice(1).find(Boolean),
    )
  }
  const enter = async (
    running: Running,
    purpose: Parameters<Running['send']>[0],
    to: Parameters<Running['send']>[1],
  ) => {
    const sent = await running.send(purpose, to)
    const answer = { proofId: sent.proofId, code: keep(`${purpose} code`, sent.code) }
    const wrong = { ...answer, code: keep('wrong code', String(999_999 - Number(answer.code)).padStart(6, '7')) }
    expect((await operations.codes.verify(await running.read(), running.visitor, wrong, request)).outcome).not.toBe(
      'verified',
    )
    expect((await operations.codes.verify(await running.read(), running.visitor, answer, request)).outcome).toBe(
      'verified',
    )
  }

  // Registration, with every factor.
  const password = keep('password', 'a-password-of-the-run-42')
  const registration = await begin({ event: 'Register' })
  await enter(registration, 'register', email)
  expect(await operations.staging.password(await registration.read(), password)).toEqual({ outcome: 'staged' })
  const totp = (await operations.enrolment.totp(await registration.read(), { issuer: 'Shop', account: email }))!
  keep('TOTP secret', totp.secret, readTotpSecret(totp.secret))
  const first = keep('TOTP code', totpCode(totp.secret))
  expect(
    await operations.enrolment.confirmTotp(await registration.read(), { proofId: totp.proofId, code: first }),
  ).toBe(true)
  const backup = (await operations.enrolment.backupCodes(await registration.read()))!
  for (const code of backup.codes) {
    keep('backup code', code)
    keep('backup code without its dash', code.replace(/\W/g, ''))
  }
  expect(await operations.enrolment.keepBackupCodes(await registration.read(), backup.proofId)).toBe(true)
  const authenticator = createAuthenticator({ origin: home.baseUrl })
  const made = (await operations.passkeys.registration(await registration.read(), {
    name: 'grace',
    displayName: 'Grace',
  }))!
  keep('challenge', made.options.challenge, Buffer.from(made.options.challenge, 'base64url'))
  const credential = registrationCredential.parse(authenticator.create(made.options))
  const { passkeys } = operations
  expect(
    await passkeys.bind(await registration.read(), registration.visitor, { proofId: made.proofId, credential }),
  ).toBe(true)
  // While it waits, too: what is staged and pending is in the database now.
  expect(await findInClear(home.sql, secrets)).toEqual([])
  await finished(registration)

  // Code, second factors.
  const byCode = await begin()
  await enter(byCode, 'sign_in', email)
  const next = keep('TOTP code', totpCode(totp.secret, 1))
  expect(await byCode.secondFactor('totp', next)).toBe('verified')
  await finished(byCode)
  const byPassword = await begin()
  expect(await byPassword.password(email, password)).toBe('verified')
  await enter(byPassword, 'mfa', { type: 'email' })
  await finished(byPassword)
  const onPaper = await begin()
  await onPaper.password(email, password)
  expect(await onPaper.secondFactor('backup_code', backup.codes[0]!)).toBe('verified')
  await finished(onPaper)

  // A passkey.
  const byPasskey = await begin()
  const asked = (await passkeys.authentication(await byPasskey.read(), 'sign_in', byPasskey.visitor))!
  keep('challenge', asked.options.challenge, Buffer.from(asked.options.challenge, 'base64url'))
  expect(
    await findInClear(
      home.sql,
      secrets.filter(({ name }) => name !== 'challenge'),
    ),
  ).toEqual([])
  const assertion = authenticationCredential.parse(authenticator.get(asked.options as never))
  const shown = { proofId: asked.proofId, credential: assertion }
  expect((await passkeys.prove(await byPasskey.read(), byPasskey.visitor, shown, request)).outcome).toBe('verified')
  await finished(byPasskey)

  // Another password.
  const reset = await begin({ event: 'ForgotPassword' })
  await enter(reset, 'reset', email)
  const another = keep('new password', 'another-password-of-the-run-43')
  await operations.staging.password(await reset.read(), another)
  expect((await reset.finish()).kind).toBe('reset')

  // A one-time token, and a wrong one.
  const token = keep('one-time token', await home.oneTimeToken(email))
  const byToken = await begin()
  for (const [given, outcome] of [
    [keep('wrong token', 'a-token-that-nobody-was-given'), 'invalid_credentials'],
    [token, 'verified'],
  ] as const) {
    const identifier = readIdentifier(email)!
    const proof = await operations.oneTimeTokens.prove(
      await byToken.read(),
      byToken.visitor,
      { identifier, token: given },
      request,
    )
    expect(proof.outcome).toBe(outcome)
  }

  // A lock, and an error in the midst.
  for (let n = 0; n < 12; n++)
    await (await home.begin()).password(email, keep('wrong password', `wrong-of-the-run-${n}!`))
  expect(await home.sql(`SELECT FROM outbox WHERE type = 'Identifier.Lockout'`)).toHaveLength(1)
  const broken = await begin()
  await home.sql(`UPDATE interactions SET staged = '{"profile": 1}' WHERE id = $1`, [broken.id])
  await broken
    .password(email, another)
    .catch((error) => errors.push(`${error} ${error.stack} ${JSON.stringify(error)}`))
  expect(errors).toHaveLength(1)

  await expect
    .poll(async () => (await home.sql(`SELECT FROM logs WHERE key LIKE '%OneTimeToken.Submit'`)).length, {
      timeout: 10_000,
    })
    .toBe(2)
  secrets.push({
    name: 'recipient',
    value: email,
    tables: ['messages', 'message_counts', 'sign_in_failures', 'failing_identifiers'],
  })
  const found = await findInClear(home.sql, secrets, { logs: home.logged(), errors: errors.join('\n') })
  expect(found).toEqual([])
  expect(secrets.length).toBeGreaterThan(60)
}, 60_000)

test('what stands in clear is found, as text, bytes, digest and in another alphabet', async () => {
  const value = 'a secret: "of" tests'
  const rows: Record<string, unknown[]> = {
    text: [value],
    hex: [Buffer.from(value).toString('hex')],
    base64: [Buffer.from(value).toString('base64url')],
  }
  for (const [name, [id]] of Object.entries(rows)) {
    await home.sql(`INSERT INTO users (id, name, custom_data) VALUES ($1, 'Somebody', $2)`, [
      `in-${name}`,
      JSON.stringify({ deep: id }),
    ])
    expect(await findInClear(home.sql, [{ name: 'it', value }]), name).toEqual(['it in users.custom_data'])
    await home.sql(`DELETE FROM users WHERE id = $1`, [`in-${name}`])
  }
  await home.sql(`INSERT INTO hmac_keys (purpose, sealed) VALUES ('clear', $1)`, [Buffer.from(`xx${value}yy`)])
  expect(await findInClear(home.sql, [{ name: 'it', value }])).toEqual(['it in hmac_keys.sealed'])
  await home.sql(`DELETE FROM hmac_keys WHERE purpose = 'clear'`)
  expect(await findInClear(home.sql, [{ name: 'it', value: '123456' }], { log: 'code=0x123456, 0.123456' })).toEqual([])
  expect(await findInClear(home.sql, [{ name: 'it', value: '123456' }], { log: '{"code":"123456"}' })).toHaveLength(1)
})
