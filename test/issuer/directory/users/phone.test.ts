import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPhone } from '../../../../issuer/directory/users/phone.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'

/** One telephone number is one user's, however it is spelt. */

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
})
afterAll(() => issuer.close())

const create = async (primaryPhone: string, instance = 0) =>
  issuer.api('POST', '/users', { primaryPhone }, { instance })
const made = async (primaryPhone: string) => {
  const { status, body } = await create(primaryPhone)
  expect([primaryPhone, status]).toEqual([primaryPhone, 200])
  return body
}
const change = (id: string, patch: object) => issuer.api('PATCH', `/users/${id}`, patch)
const events = async (id: string) =>
  (await issuer.sql('SELECT type FROM outbox WHERE entity_id = $1 ORDER BY seq', [id])).map(({ type }) => type)

const inUse = { status: 422, body: { code: 'user.phone_already_in_use' } }

describe('a number', () => {
  test.each([
    ['12025550123', '12025550123'],
    ['61412345671', '61412345671'],
    ['610412345672', '61412345672'],
    ['4407911123456', '447911123456'],
    // Each country has its own way to begin a number at home.
    ['3606201234567', '36201234567'],
    // Here the 0 belongs to the number.
    ['390612345678', '390612345678'],
    // Numbers are given out faster than anybody lists them: what has a length of its country will do.
    ['614123456789', '614123456789'],
    // As often as it takes: what is stored reads as itself.
    ['6100412345673', '61412345673'],
  ])('%s is kept as %s', async (spelt, kept) => {
    const user = await made(spelt)
    expect(user.primaryPhone).toBe(kept)
    expect((await issuer.api('GET', `/users/${user.id}`)).body.primaryPhone).toBe(kept)
    expect(await create(spelt)).toMatchObject(inUse)
    expect(await create(kept)).toMatchObject(inUse)
  })

  test.each([
    '99999',
    '123456789',
    '0412345678',
    '0061412345678',
    '1',
    '9'.repeat(16),
    '81513866013378740',
    '1'.repeat(128),
  ])('%s is none', async (primaryPhone) => {
    const refused = {
      status: 422,
      body: { code: 'user.invalid_phone', details: expect.stringContaining('country code') },
    }
    expect(await create(primaryPhone)).toMatchObject(refused)
    const { id } = (await issuer.api('POST', '/users', {})).body
    expect(await change(id, { primaryPhone })).toMatchObject(refused)
    expect((await issuer.api('GET', `/users/${id}`)).body.primaryPhone).toBeNull()
    expect(await events(id)).toEqual(['User.Created'])
  })

  test.each(['+61412345678', '61 412 345 678', 'nobody', '６１４１２３４５６７８', '1'.repeat(129)])(
    '%s does not consist of digits',
    async (primaryPhone) => {
      expect(await create(primaryPhone)).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
    },
  )

  test('reads as itself once it is kept, and so does each of its older spellings', () => {
    let found = 0
    // Digits spread evenly over 1 to 18 places, some with a 0 where it is dialled at home.
    for (let step = 1; step <= 4_000; step++) {
      const digits = String(BigInt(step) * 6_364_136_223_846_793_005n).slice(0, 1 + (step % 18))
      const spelt = step % 3 === 0 ? `${digits.slice(0, 2)}0${digits.slice(2)}` : digits
      let phone: ReturnType<typeof readPhone>
      try {
        phone = readPhone(spelt)
      } catch (error) {
        expect(error).toMatchObject({ code: 'user.invalid_phone', status: 422 })
        continue
      }
      found += 1
      expect(phone.number).toMatch(/^\d{5,15}$/)
      for (const spelling of phone.spellings) expect([spelt, readPhone(spelling).number]).toEqual([spelt, phone.number])
    }
    expect(found).toBeGreaterThan(200)
  })

  test('is taken from its user by null and by an empty text', async () => {
    for (const none of [null, '']) {
      const { id } = await made('12025550140')
      expect((await change(id, { primaryPhone: none })).body.primaryPhone).toBeNull()
    }
  })
})

describe('in another spelling', () => {
  test.each([
    ['61412345001', '610412345001'],
    ['610412345002', '61412345002'],
  ])('the number of somebody else is in use: %s, %s', async (existing, other) => {
    const owner = await made(existing)
    expect(await create(other)).toMatchObject(inUse)
    const { id } = (await issuer.api('POST', '/users', { name: 'Grace' })).body
    expect(await change(id, { primaryPhone: other, name: 'Changed' })).toMatchObject(inUse)
    expect((await issuer.api('GET', `/users/${id}`)).body).toMatchObject({ primaryPhone: null, name: 'Grace' })
    expect(await events(id)).toEqual(['User.Created'])

    // Its user may send either, which changes nothing.
    const unchanged = { status: 200, body: { primaryPhone: owner.primaryPhone, updatedAt: owner.updatedAt } }
    for (const spelt of [existing, other])
      expect(await change(owner.id, { primaryPhone: spelt })).toMatchObject(unchanged)
    expect(await events(owner.id)).toEqual(['User.Created'])
  })

  test('asked for by many at once, at two issuers, it is given to one', async () => {
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, turn) => create(turn % 2 ? '610412345003' : '61412345003', turn % 3 ? 1 : 0)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(23).fill(422)])
    const codes = answers.filter(({ status }) => status === 422).map(({ body }) => body.code)
    expect(new Set(codes)).toEqual(new Set(['user.phone_already_in_use']))
    const rows = await issuer.sql(`SELECT primary_phone FROM users WHERE primary_phone LIKE '61%412345003'`)
    expect(rows).toEqual([{ primary_phone: '61412345003' }])
  })
})

describe('what an older version has stored', () => {
  const stored = async (primaryPhone: string) => {
    const { id } = await issuer.createUser()
    await issuer.sql('UPDATE users SET primary_phone = $2 WHERE id = $1', [id, primaryPhone])
    return id
  }

  test.each([
    ['610412345101', '61412345101'],
    ['3606201234102', '36201234102'],
    ['6104123456103', '614123456103'],
  ])('in another spelling, %s, belongs to its user: nobody else gets %s', async (old, normal) => {
    const id = await stored(old)
    expect(await create(normal)).toMatchObject(inUse)
    expect(await create(old)).toMatchObject(inUse)
    expect((await issuer.api('GET', `/users/${id}`)).body.primaryPhone).toBe(old)
    expect((await change(id, { name: 'Ada', primaryPhone: old })).body).toMatchObject({
      name: 'Ada',
      primaryPhone: old,
    })
    expect((await change(id, { primaryPhone: normal })).body.primaryPhone).toBe(normal)
    expect(await create(old)).toMatchObject(inUse)
  })

  test.each(['99999', '1000', '0061412345104'])('and is no number, %s, stays until it is changed', async (old) => {
    const id = await stored(old)
    expect((await change(id, { name: 'Ada', primaryPhone: old })).body).toMatchObject({
      name: 'Ada',
      primaryPhone: old,
    })
    expect((await change(id, { name: 'Countess' })).body).toMatchObject({ name: 'Countess', primaryPhone: old })
    expect(await change(id, { primaryPhone: `${old}1` })).toMatchObject({ status: 422 })
    expect((await change(id, { primaryPhone: null })).body.primaryPhone).toBeNull()
  })

  test('in both spellings for two users stays with both, and either can still be changed', async () => {
    const [first, second] = [await stored('61412345105'), await stored('610412345105')]
    expect((await change(first, { name: 'Ada' })).status).toBe(200)
    expect((await change(second, { primaryPhone: '610412345105', name: 'Grace' })).status).toBe(200)
    expect(await change(second, { primaryPhone: '61412345105' })).toMatchObject(inUse)
    expect((await change(second, { primaryPhone: '61412345106' })).body.primaryPhone).toBe('61412345106')
  })
})
