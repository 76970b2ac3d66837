import { describe, expect, test } from 'vitest'
import { type AboutUser, checkPassword } from '../../../../issuer/directory/users/password-policy/check-password.ts'
import {
  defaultPasswordPolicy,
  type PasswordPolicy,
} from '../../../../issuer/directory/users/password-policy/policy.ts'

const ada: AboutUser = {
  username: 'ada_l',
  name: 'Ada Lovelace',
  email: 'countess@example.test',
  phone: '+44 7700 900147',
}

const issuesOf = (password: string, policy: Partial<PasswordPolicy> = {}, about: AboutUser = ada) =>
  checkPassword(password, { ...defaultPasswordPolicy, ...policy }, about).map(({ code }) =>
    code.slice('password_rejected.'.length),
  )

describe('what people may choose', () => {
  test.each([
    'correct horse battery staple',
    'a good password',
    'analytical engine',
    // What the tests of existing clients choose.
    'pwd_a1b2c3d4-e5f',
    'x7Qm!p2z',
    'пусть-бегут',
    '悟空去西天取經的路',
    'čtyři žluté švestky',
    '🐙🦀🐳🐬🦑🐡🐠🦞',
  ])('%s', (password) => {
    expect(issuesOf(password)).toEqual([])
  })
})

describe('what is refused', () => {
  test.each([
    ['Password1!', ['pwned']],
    ['P@$$w0rd', ['pwned']],
    ['summer2024', ['pwned']],
    ['let-me-in-2024', ['pwned']],
    ['пароль123', ['pwned']],
    ['passwordpassword', ['pwned']],
    ['12345678', ['restricted.sequence']],
    ['98765432', ['restricted.sequence']],
    ['qwertzuiop', ['pwned', 'restricted.sequence']],
    ['aaaaaaaa', ['restricted.repetition']],
    ['悟空悟空悟空悟空', ['restricted.repetition']],
    ['aaabbbccc', ['restricted.repetition']],
    ['lovelace1815', ['restricted.user_info']],
    ['Ada Lovelace', ['restricted.user_info']],
    ['c0untess!', ['restricted.user_info']],
    ['ada_l_ada_l', ['restricted.user_info']],
    ['447700900147', ['restricted.user_info']],
    ['short', ['too_short']],
  ])('%s', (password, issues) => {
    expect(issuesOf(password)).toEqual(issues)
  })

  test('what is too long is not looked at any further', () => {
    expect(checkPassword('a'.repeat(257), defaultPasswordPolicy)).toEqual([
      { code: 'password_rejected.too_long', interpolation: { max: 256 } },
    ])
  })
})

test('characters are counted as people see them: not in bytes, not in halves, composed or not', () => {
  expect(issuesOf('🐙🦀🐳🐬🦑🐡🐠')).toEqual(['too_short'])
  expect(issuesOf('🐙🦀🐳🐬🦑🐡🐠🦞')).toEqual([])
  // Seven letters of two code points each.
  expect(issuesOf('žščřďťň'.normalize('NFD'))).toEqual(['too_short'])
  // A ligature is the letters that it stands for.
  expect(issuesOf('ﬃx7Qm!p')).toEqual([])
})

test('short own data is no reason: it is in many passwords by chance', () => {
  expect(issuesOf('x7adaQm!', {}, { username: 'ada', name: 'Li Wu' })).toEqual([])
  expect(issuesOf('adaada!x', {}, { username: 'ada' })).toEqual([])
})

test('a policy switches rules off, and asks for character types and words of its own', () => {
  const none = { pwned: false, repetitionAndSequence: false, userInfo: false, words: [] }
  expect(issuesOf('password', { rejects: none })).toEqual([])
  expect(issuesOf('12345678', { rejects: none })).toEqual([])
  expect(issuesOf('lovelace1815', { rejects: none })).toEqual([])
  const { rejects } = defaultPasswordPolicy
  expect(issuesOf('Surrogate-99', { rejects: { ...rejects, words: ['surrogate'] } })).toEqual(['restricted.words'])
  expect(issuesOf('analytical engine', { characterTypes: { min: 3 } })).toEqual(['character_types'])
  expect(issuesOf('Analytical engine', { characterTypes: { min: 3 } })).toEqual([])
})

test('the preset of NIST asks for 15 characters, for 8 where a second factor is mandatory, and never for fewer than the policy', () => {
  const policy: PasswordPolicy = { ...defaultPasswordPolicy, preset: 'nist' }
  const short = (password: string, isMfaMandatory: boolean, min = 8) =>
    checkPassword(password, { ...policy, length: { min, max: 256 } }, {}, { isMfaMandatory })
  expect(short('14 characters.', false)).toEqual([{ code: 'password_rejected.too_short', interpolation: { min: 15 } }])
  expect(short('14 characters.', true)).toEqual([])
  expect(short('14 characters.', true, 20)).toEqual([
    { code: 'password_rejected.too_short', interpolation: { min: 20 } },
  ])
})

test('no password takes long to look at', () => {
  const words = Array.from({ length: 1_000 }, (_, index) => `${'ab'.repeat(60)}${index}`)
  const policy = { rejects: { ...defaultPasswordPolicy.rejects, words } }
  expect(issuesOf('ab'.repeat(128), policy)).toEqual(['restricted.repetition'])
  expect(issuesOf(`${'a'.repeat(255)}!`, policy)).toEqual(['restricted.repetition'])
})
