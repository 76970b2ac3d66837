import { describe, expect, test } from 'vitest'
import { checkEmail } from '../../../../issuer/directory/users/registration-rules/email-blocklist.ts'
import {
  checkUsername,
  readUsernamePolicy,
} from '../../../../issuer/directory/users/registration-rules/username-policy.ts'

describe('user names', () => {
  test('without a policy they look as all user names do', () => {
    const policy = readUsernamePolicy({})
    expect(['Ada', '_x', 'a', 'A_1'.repeat(42)].map((name) => checkUsername(name, policy))).toEqual(
      Array(4).fill(undefined),
    )
    expect(['', '1ada', 'a-b', 'ädä', 'a'.repeat(129)].map((name) => checkUsername(name, policy))).toEqual([
      'required',
      'starts_with_number',
      'invalid_characters',
      'invalid_characters',
      'too_long',
    ])
  })

  test('a policy narrows length and characters', () => {
    const policy = readUsernamePolicy({
      ...{ minLength: 3, maxLength: 8 },
      allowedChars: { uppercase: false, numbers: false, underscore: false },
    })
    const names = ['ab', 'abcdefghi', 'Ada', 'ada1', 'ada_l', 'ada']
    expect(names.map((name) => checkUsername(name, policy))).toEqual([
      'too_short',
      'too_long',
      'uppercase_not_allowed',
      'numbers_not_allowed',
      'underscore_not_allowed',
      undefined,
    ])
  })

  test('a policy that cannot be read is none', () => {
    expect(readUsernamePolicy({ minLength: 'three' })).toEqual(readUsernamePolicy({}))
  })
})

describe('addresses', () => {
  const open = { blockSubaddressing: false, customAllowlist: [], customBlocklist: [] }
  const notAllowed = 'session.email_blocklist.email_not_allowed'
  const blocked = (item: string, email: string) =>
    checkEmail(email, { ...open, customBlocklist: [item] }) === notAllowed

  test.each([
    ['@trash.test', 'ada@trash.test', true],
    ['@trash.test', 'ada@TRASH.test', true],
    ['@trash.test', 'ada@mail.trash.test', false],
    ['@trash.test', 'trash.test@example.test', false],
    ['@*.trash.test', 'ada@mail.trash.test', true],
    ['@*.trash.test', 'ada@trash.test', false],
    ['ada@example.test', 'Ada@Example.test', true],
    ['ada@example.test', 'bada@example.test', false],
    ['spam*@example.test', 'spam-1@example.test', true],
    ['*+*@example.test', 'a+b@example.test', true],
    ['a*a@example.test', 'a@example.test', false],
    ['.*@example.test', 'ada@example.test', false],
  ])('%s blocks %s: %s', (item, email, is) => {
    expect(blocked(item, email)).toBe(is)
  })

  test('parts of an address behind a plus sign', () => {
    const policy = { ...open, blockSubaddressing: true }
    expect(checkEmail('ada+shop@example.test', policy)).toBe('session.email_blocklist.email_subaddressing_not_allowed')
    expect(checkEmail('ada@plus+example.test', policy)).toBeUndefined()
    expect(checkEmail('ada+shop@example.test', open)).toBeUndefined()
  })

  test('a list of what is allowed refuses all others, and does not allow what is blocked', () => {
    const policy = { ...open, customAllowlist: ['@example.test'], customBlocklist: ['eve@example.test'] }
    expect(checkEmail('ada@example.test', policy)).toBeUndefined()
    expect(checkEmail('ada@other.test', policy)).toBe(notAllowed)
    expect(checkEmail('eve@example.test', policy)).toBe(notAllowed)
  })

  test('many wildcards take no longer than few', () => {
    expect(blocked(`${'*a'.repeat(100)}b@example.test`, `${'a'.repeat(110)}@example.test`)).toBe(false)
  })
})
