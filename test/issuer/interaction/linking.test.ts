import { expect, test } from 'vitest'
import { linkingOf, vouchedEmail } from '../../../issuer/interaction/linking.ts'

const account = { id: 'ada', isEmailVerified: true, hasSecondFactor: false, isElsewhere: false }
const byMail = { kind: 'social', email: 'ada@example.com' } as const

test('an identity names its person, whatever address it has and whose that is', () => {
  const facts = { holderId: 'bob', assertion: byMail, account, linksAutomatically: true }
  expect(linkingOf(facts)).toEqual({ outcome: 'known', userId: 'bob' })
})

test('an identity without a vouched address, or with one that is nobody’s, begins something new', () => {
  const facts = { holderId: undefined, linksAutomatically: true }
  expect(linkingOf({ ...facts, assertion: { kind: 'social', email: undefined }, account })).toEqual({ outcome: 'new' })
  expect(linkingOf({ ...facts, assertion: byMail, account: undefined })).toEqual({ outcome: 'new' })
})

test('an address links by itself only where every condition holds: one that fails asks for a proof of the account', () => {
  const outcomes = [true, false].flatMap((linksAutomatically) =>
    [true, false].flatMap((isEmailVerified) =>
      [true, false].flatMap((hasSecondFactor) =>
        [true, false].flatMap((isElsewhere) =>
          (['social', 'sso'] as const).map((kind) => {
            const facts = { ...account, isEmailVerified, hasSecondFactor, isElsewhere }
            const asked = { holderId: undefined, assertion: { ...byMail, kind }, account: facts, linksAutomatically }
            const { outcome } = linkingOf(asked)
            return { kind, linksAutomatically, isEmailVerified, hasSecondFactor, isElsewhere, outcome }
          }),
        ),
      ),
    ),
  )
  for (const { kind, outcome, ...facts } of outcomes) {
    const isSafe = facts.linksAutomatically && facts.isEmailVerified && !facts.hasSecondFactor
    const expected = !facts.isElsewhere && (kind === 'sso' || isSafe) ? 'by_address' : 'prove_first'
    expect({ kind, ...facts, outcome }).toEqual({ kind, ...facts, outcome: expected })
  }
  expect(outcomes.filter(({ kind, outcome }) => kind === 'social' && outcome === 'by_address')).toHaveLength(1)
})

test('an address counts only when the provider says so, and an enterprise only for its own domains', () => {
  const email = 'ada@a.example'
  expect(vouchedEmail({ kind: 'social', email, emailVerified: true }, [])).toBe(email)
  expect(vouchedEmail({ kind: 'social', email, emailVerified: false }, [])).toBeUndefined()
  expect(vouchedEmail({ kind: 'social', email, emailVerified: 'false' as never }, [])).toBeUndefined()
  expect(vouchedEmail({ kind: 'social', email, emailVerified: 'true' as never }, [])).toBeUndefined()
  expect(vouchedEmail({ kind: 'sso', email: 'Ada@A.Example', emailVerified: true }, ['a.example'])).toBe(
    'Ada@A.Example',
  )
  expect(vouchedEmail({ kind: 'sso', email, emailVerified: false }, ['a.example'])).toBeUndefined()
  for (const other of ['ada@b.example', 'ada@sub.a.example', 'ada@a.example.evil', 'x@a.example@b.example']) {
    expect(vouchedEmail({ kind: 'sso', email: other, emailVerified: true }, ['a.example']), other).toBeUndefined()
  }
})
