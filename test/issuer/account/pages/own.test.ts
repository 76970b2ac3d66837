import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { signInExperience } from '../../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { type AccountVisitor, textOf, visitAccount } from '../../../support/account-pages.ts'
import { headingOf, type Visit } from '../../../support/browser.ts'
import { type ExperiencePerson, startExperience, type TestExperience } from '../../../support/experience.ts'

/** What people see and change of their own accounts, without a script. */

const mfa = { factors: ['Totp', 'WebAuthn', 'BackupCode'], policy: 'NoPrompt' } as const
let experience: TestExperience
beforeAll(async () => {
  experience = await startExperience({ settings: { mfa: signInExperience.schema.parse({ mfa }).mfa } })
})
afterAll(() => experience.close())

const visit = (person: ExperiencePerson) => visitAccount(experience.issuer, person)

/** On the page, with the password. */
const confirm = async ({ browser, open }: AccountVisitor, person: ExperiencePerson, next: string) => {
  await open(next)
  const page = await open(`/account/confirm?next=${next}&with=password`)
  return browser.submit(page, { password: person.password, choice: 'verify' }, { with: 'kind' })
}

const set = (fields: Record<string, string>) => experience.issuer.api('PATCH', '/account-center', { fields })

const at = (page: Visit) => new URL(page.url).pathname

describe('confirming who one is', () => {
  test('with the password: a wrong one says so, a right one leads back and counts for ten minutes', async () => {
    const person = await experience.createPerson()
    const ada = visit(person)
    const before = await ada.open('/account/password')
    expect(textOf(before)).toContain('please confirm first that it is you')
    const page = await ada.open('/account/confirm?next=/account/password&with=password')
    const wrong = await ada.browser.submit(page, { password: 'wrong', choice: 'verify' }, { with: 'kind' })
    expect(wrong.status).toBe(400)
    expect(textOf(wrong)).toContain('This is not your password.')
    const right = await ada.browser.submit(wrong, { password: person.password, choice: 'verify' }, { with: 'kind' })
    expect(at(right)).toBe('/account/password')
    expect(textOf(right)).toContain('Thank you. You can make changes now.')
    expect(right.forms[0]!.names).toContain('password')
    await experience.issuer.sql('UPDATE proofs SET expires_at = now() WHERE user_id = $1', [person.id])
    expect(textOf(await ada.open('/account/password'))).toContain('please confirm first that it is you')
  })

  test('with a code by mail or text message, an authenticator app, a backup code', async () => {
    const person = await experience.createPerson()
    const ada = visit(person)
    await ada.open('/account')
    const secret = await experience.addTotp(person)
    const codes = await experience.addBackupCodes(person)
    const over = () => experience.issuer.sql('UPDATE proofs SET expires_at = now() WHERE user_id = $1', [person.id])
    for (const [kind, to] of [
      ['email_code', person.email],
      ['phone_code', person.phone],
    ] as const) {
      const page = await ada.open(`/account/confirm?next=/account/sessions&with=${kind}`)
      const sent = await ada.browser.submit(page, { choice: 'send' }, { with: 'kind' })
      expect(sent.text).toMatch(/•••/)
      const code = await experience.codeTo(to)
      const wrong = code === '000000' ? '000001' : '000000'
      const refused = await ada.browser.submit(sent, { code: wrong, choice: 'verify' }, { with: 'code' })
      expect(textOf(refused)).toContain('This code is not right.')
      const done = await ada.browser.submit(refused, { code, choice: 'verify' }, { with: 'code' })
      expect(at(done), kind).toBe('/account/sessions')
      expect(textOf(done)).toContain('Thank you.')
      await over()
    }
    for (const [kind, code] of [
      ['totp', experience.totp(secret)],
      ['backup_code', codes[5]!],
    ] as const) {
      const page = await ada.open(`/account/confirm?next=/account/sessions&with=${kind}`)
      const refused = await ada.browser.submit(page, { code: '', choice: 'verify' }, { with: 'code' })
      expect(textOf(refused)).toContain('Enter the code')
      const done = await ada.browser.submit(refused, { code, choice: 'verify' }, { with: 'code' })
      expect(at(done), kind).toBe('/account/sessions')
      await over()
    }
  })

  test('leads back to pages of the account alone', async () => {
    const person = await experience.createPerson()
    const ada = visit(person)
    await ada.open('/account')
    for (const next of [
      'https://evil.example/',
      '//evil.example',
      '/account/../evil',
      '/account/x?y=//evil',
      '/sign-in',
    ]) {
      const page = await ada.open(`/account/confirm?next=${encodeURIComponent(next)}&with=password`)
      const values = { password: person.password, choice: 'verify', next }
      const answer = await ada.browser.submit(page, values, { with: 'kind', follow: false })
      expect(answer.location, next).toMatch(new RegExp(`^${experience.issuer.baseUrl}/account\\?done=`))
    }
  })

  test.each(['passkey', 'federated'])(
    'a form that names a %s and holds text proves nothing, and is not thanked for',
    async (kind) => {
      const person = await experience.createPerson()
      const ada = visit(person)
      const page = await ada.open('/account/confirm?next=/account/password&with=password')
      const answer = await ada.browser.submit(page, { kind, code: '123456', choice: 'verify' }, { with: 'kind' })
      expect([answer.status, at(answer)]).toEqual([400, '/account/confirm'])
      expect(textOf(answer)).not.toContain('Thank you')
    },
  )

  test('counts in this browser alone', async () => {
    const person = await experience.createPerson()
    const [here, there] = [visit(person), visit(person)]
    await there.open('/account')
    await confirm(here, person, '/account/password')
    expect(textOf(await there.open('/account/password'))).toContain('please confirm first that it is you')
    const form = (await here.open('/account/password')).forms[0]!
    const csrf = (await there.open('/account/profile')).forms[0]!.fields['csrf']!
    expect(form.fields['csrf']).not.toBe(csrf)
  })
})

describe('one’s own data', () => {
  test('the profile is shown, kept and given back when something is wrong with it', async () => {
    const person = await experience.createPerson()
    const ada = visit(person)
    const page = await ada.open('/account/profile')
    const values = { name: 'Ada <Lovelace>', givenName: 'Ada', country: 'England', zoneinfo: 'Europe/London' }
    const wrong = await ada.browser.submit(page, { ...values, avatar: 'javascript:alert(1)', choice: 'save' })
    expect(wrong.status).toBe(400)
    expect(wrong.forms[0]!.fields).toMatchObject({ ...values, avatar: 'javascript:alert(1)' })
    const saved = await ada.browser.submit(wrong, { avatar: 'https://cdn.example/ada.png', choice: 'save' })
    expect(textOf(saved)).toContain('Your changes are saved.')
    expect(saved.text).toContain('Ada &lt;Lovelace&gt;')
    expect(saved.headers.get('content-security-policy')).toContain("img-src 'self' https://cdn.example")
    expect((await experience.issuer.api('GET', `/users/${person.id}`)).body).toMatchObject({
      name: 'Ada <Lovelace>',
      avatar: 'https://cdn.example/ada.png',
      profile: { givenName: 'Ada', zoneinfo: 'Europe/London', address: { country: 'England' } },
    })
    const changes = async () =>
      (await experience.events('User.Data.Updated')).filter(({ data }) => (data as { id: string }).id === person.id)
    const { length } = await changes()
    const again = await ada.browser.submit(saved, { choice: 'save' })
    expect(textOf(again)).toContain('Your changes are saved.')
    expect(await changes()).toHaveLength(length)
  })

  test('another password signs out everywhere else, and not here', async () => {
    const person = await experience.createPerson()
    const [ada, other] = [visit(person), visit(person)]
    await other.open('/account')
    const page = await confirm(ada, person, '/account/password')
    for (const [password, said] of [
      ['', 'Choose a password'],
      ['short', 'Use at least 8 characters'],
      [person.password, 'This is the password that you have.'],
    ] as const) {
      const refused = await ada.browser.submit(page, { password, choice: 'save' })
      expect(refused.status, password).toBe(400)
      expect(textOf(refused)).toContain(said)
      expect(refused.text).not.toContain(`value="${password || 'x'}"`)
    }
    const done = await ada.browser.submit(page, { password: 'seven purple elephants', choice: 'save' })
    expect(textOf(done)).toContain('Your password is changed.')
    expect(at(await ada.browser.get('/account'))).toBe('/account')
    expect(at(await other.browser.get('/account'))).toMatch(/^\/sign-in\//)
    const fresh = visit({ ...person, password: 'seven purple elephants' })
    expect(headingOf(await fresh.open('/account'))).toBe('Your account')
  })

  test('a new address is theirs when its code comes back; the old one hears of it', async () => {
    const person = await experience.createPerson()
    const ada = visit(person)
    const page = await confirm(ada, person, '/account/email')
    expect(textOf(page)).toContain(person.email)
    const same = await ada.browser.submit(page, { address: person.email, choice: 'send' })
    expect(textOf(same)).toContain('This is the one that you have.')
    const wrong = await ada.browser.submit(page, { address: 'no address', choice: 'send' })
    expect(wrong.forms[0]!.fields['address']).toBe('no address')
    const next = `new-${person.id}@example.test`
    const sent = await ada.browser.submit(page, { address: next, choice: 'send' })
    expect(textOf(sent)).toContain(`We have sent a code to ${next}`)
    const code = await experience.codeTo(next)
    const refused = await ada.browser.submit(sent, { code: code === '111111' ? '222222' : '111111', choice: 'verify' })
    expect(textOf(refused)).toContain('This code is not right.')
    expect(textOf(await ada.browser.get('/account/email?other='))).toContain('New email address')
    const done = await ada.browser.submit(refused, { code, choice: 'verify' })
    expect(textOf(done)).toContain('Your changes are saved.')
    expect(textOf(done)).toContain(next)
    expect((await experience.issuer.api('GET', `/users/${person.id}`)).body.primaryEmail).toBe(next)
    expect((await experience.messagesTo(person.email)).map(({ type }) => type)).toContain('AddressChanged')
  })

  test('somebody else’s address is refused only by who can read its mail', async () => {
    const [person, eve] = [await experience.createPerson(), await experience.createPerson()]
    const ada = visit(person)
    const page = await confirm(ada, person, '/account/email')
    const sent = await ada.browser.submit(page, { address: eve.email, choice: 'send' })
    expect(sent.status).toBe(200)
    const done = await ada.browser.submit(sent, { code: await experience.codeTo(eve.email), choice: 'verify' })
    expect(textOf(done)).toContain('This email address belongs to another account.')
  })

  test('the user name', async () => {
    const [person, eve] = [await experience.createPerson(), await experience.createPerson()]
    const ada = visit(person)
    const page = await confirm(ada, person, '/account/username')
    for (const [username, said] of [
      ['', 'Enter a username'],
      ['1st', 'Use letters from a to z'],
      [eve.username, 'This username is taken.'],
    ] as const) {
      const refused = await ada.browser.submit(page, { username, choice: 'save' })
      expect(textOf(refused), username).toContain(said)
    }
    await ada.browser.submit(page, { username: `ada_${person.id}`, choice: 'save' })
    expect((await experience.issuer.api('GET', `/users/${person.id}`)).body.username).toBe(`ada_${person.id}`)
  })
})

describe('factors', () => {
  test('an authenticator app is set up by a code of it, and backup codes are shown once and kept', async () => {
    const person = await experience.createPerson()
    const ada = visit(person)
    const empty = await confirm(ada, person, '/account/backup-codes')
    expect(textOf(await ada.browser.submit(empty, { choice: 'new' }))).toContain('only stand beside another factor')

    const begun = await ada.browser.submit(await ada.open('/account/authenticator'), { choice: 'new' })
    const { secret } = begun.forms[0]!.fields
    expect(textOf(begun)).toContain(secret!.slice(0, 4))
    expect(begun.text).toContain('<svg class="qr"')
    const wrong = await ada.browser.submit(begun, { code: '000000', choice: 'verify' })
    expect(wrong.forms[0]!.fields['secret']).toBe(secret)
    const forged = await ada.browser.submit(begun, { code: '000000', secret: 'A'.repeat(32), choice: 'verify' })
    expect(forged.text).not.toContain('A'.repeat(32))
    const done = await ada.browser.submit(begun, { code: experience.totp(secret!), choice: 'verify' })
    expect(textOf(done)).toContain('Your authenticator app is set up.')

    const codes = await ada.browser.submit(await ada.open('/account/backup-codes'), { choice: 'new' })
    const shown = [...codes.text.matchAll(/<li><code>([^<]+)<\/code>/g)].map(([, code]) => code!)
    expect(shown).toHaveLength(10)
    const kept = await ada.browser.submit(codes, { choice: 'keep' })
    expect(textOf(kept)).toContain('Your new codes are good from now on')
    expect(textOf(kept)).toContain('10 of them are left')
    for (const code of shown) expect(kept.text).not.toContain(code)
    const twice = await ada.browser.submit(codes, { choice: 'keep' })
    expect(textOf(twice)).toContain('These codes were open for too long')

    const removed = await ada.browser.submit(
      await ada.open('/account/authenticator'),
      { choice: 'remove' },
      { with: 'id' },
    )
    expect(textOf(removed)).toContain('It is removed.')
    expect((await experience.messagesTo(person.email)).map(({ type }) => type)).toEqual(
      expect.arrayContaining(['FactorAdded', 'FactorRemoved']),
    )
  })

  test('a passkey is named and removed; what was not made here is nobody’s', async () => {
    const [person, eve] = [await experience.createPerson(), await experience.createPerson()]
    await experience.addPasskey(eve)
    const ada = visit(person)
    const page = await confirm(ada, person, '/account/passkeys')
    expect(textOf(page)).toContain('You have no passkey.')
    await experience.addPasskey(person)
    const listed = await ada.open('/account/passkeys')
    const named = await ada.browser.submit(listed, { name: 'My <phone>', choice: 'rename' }, { with: 'name' })
    expect(named.text).toContain('<bdi>My &lt;phone&gt;</bdi>')
    const [hers] = await experience.issuer.sql<{ id: string }>('SELECT id FROM passkeys WHERE user_id = $1', [eve.id])
    const foreign = await ada.browser.submit(named, { id: hers!.id, name: 'mine', choice: 'rename' }, { with: 'name' })
    expect(foreign.status).toBe(400)
    await ada.browser.submit(named, { id: hers!.id, choice: 'remove' }, { with: 'name' })
    expect(await experience.issuer.sql('SELECT id FROM passkeys WHERE id = $1', [hers!.id])).toHaveLength(1)
    const removed = await ada.browser.submit(named, { choice: 'remove' }, { with: 'id' })
    expect(textOf(removed)).toContain('It is removed.')
  })
})

describe('settings', () => {
  const paths: Record<string, string> = {
    email: '/account/email',
    phone: '/account/phone',
    username: '/account/username',
    password: '/account/password',
    passkey: '/account/passkeys',
    session: '/account/sessions',
  }

  test('a field that is off has no page, one to read has no form', async () => {
    const person = await experience.createPerson()
    const ada = visit(person)
    await ada.open('/account')
    await ada.confirm()
    for (const [field, path] of Object.entries(paths)) {
      await set({ [field]: 'Off' })
      expect((await ada.browser.get(path)).status, field).toBe(404)
      expect((await ada.browser.get('/account')).text, field).not.toContain(`href="${path}"`)
      await set({ [field]: 'ReadOnly' })
      const read = await ada.browser.get(path)
      expect(read.status, field).toBe(200)
      if (field !== 'session') expect(textOf(read), field).toContain('This cannot be changed here.')
      expect(read.forms, field).toEqual([])
      await set({ [field]: 'Edit' })
    }
  })

  test('a form that was open when its field was closed changes nothing', async () => {
    const person = await experience.createPerson()
    const ada = visit(person)
    const page = await confirm(ada, person, '/account/username')
    await set({ username: 'ReadOnly' })
    const refused = await ada.browser.submit(page, { username: 'changed_anyhow', choice: 'save' })
    await set({ username: 'Edit' })
    expect(refused.status).toBe(200)
    expect((await experience.issuer.api('GET', `/users/${person.id}`)).body.username).toBe(person.username)
  })

  test('without an account center there is no page at all', async () => {
    const person = await experience.createPerson()
    const ada = visit(person)
    await ada.open('/account')
    await experience.issuer.api('PATCH', '/account-center', { enabled: false })
    expect((await ada.browser.get('/account')).status).toBe(404)
    await experience.issuer.api('PATCH', '/account-center', { enabled: true })
    expect((await ada.browser.get('/account')).status).toBe(200)
  })
})
