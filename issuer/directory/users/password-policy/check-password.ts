import { normalizedPassword } from '../password.ts'
import { coreOf, isCommonPassword } from './common-passwords.ts'
import { type PasswordPolicy, shortestPassword } from './policy.ts'
import { isOneRepeated, repetitionAt, sequenceAt, wordAt } from './predictable.ts'

/** What is known of whoever chooses a password. */
export interface AboutUser {
  username?: string | null | undefined
  email?: string | null | undefined
  /** In any spelling. */
  phone?: string | null | undefined
  name?: string | null | undefined
}

/** Why a password is not good enough, in the codes that existing clients know. */
export interface PasswordIssue {
  code: `password_rejected.${RejectionCode}`
  /** The bound that was missed. */
  interpolation?: { min: number } | { max: number }
}

export type RejectionCode =
  | 'too_short'
  | 'too_long'
  | 'character_types'
  | 'pwned'
  | 'restricted.repetition'
  | 'restricted.sequence'
  | 'restricted.user_info'
  | 'restricted.words'

/** What a short text may stand for by chance is nobody's data. */
const shortestOwnData = 4
/** With fewer characters that nobody could predict, a password is no secret. */
const unpredictable = 3

/**
 * What is wrong with a password; nothing when it will do. Of any script. Breach lists are asked apart
 * (`breached/breached-passwords.ts`).
 */
export const checkPassword = (
  typed: string,
  policy: PasswordPolicy,
  about: AboutUser = {},
  circumstances: { isMfaMandatory: boolean } = { isMfaMandatory: false },
): PasswordIssue[] => {
  const password = normalizedPassword(typed)
  const characters = [...password]
  const issues: PasswordIssue[] = []
  const min = shortestPassword(policy, circumstances)
  if (characters.length < min) issues.push({ code: 'password_rejected.too_short', interpolation: { min } })
  const { max } = policy.length
  if (characters.length > max) {
    // There is nothing more to say of a novel, and looking at it would take its time.
    return [{ code: 'password_rejected.too_long', interpolation: { max } }]
  }
  const { min: types } = policy.characterTypes
  if (typesOf(characters) < types) {
    issues.push({ code: 'password_rejected.character_types', interpolation: { min: types } })
  }
  if (policy.rejects.pwned && isCommonPassword(password)) issues.push({ code: 'password_rejected.pwned' })
  return [...issues, ...predictableIssues(password, policy, about)]
}

const typesOf = (characters: readonly string[]): number => {
  const tests = [/\p{Ll}/u, /\p{Lu}/u, /\p{Nd}/u, /[^\p{Ll}\p{Lu}\p{Nd}]/u]
  return tests.filter((test) => characters.some((character) => test.test(character))).length
}

/** One rule for a part of a password that can be predicted: how many characters of it begin at a place. */
interface Rule {
  code: RejectionCode
  lengthAt(characters: readonly string[], place: number): number
}

const predictableIssues = (password: string, { rejects }: PasswordPolicy, about: AboutUser): PasswordIssue[] => {
  const ownData = rejects.userInfo ? ownDataOf(about) : []
  const words = rejects.words.map(folded)
  const found = new Set<RejectionCode>()

  const core = coreOf(password)
  const isOf = (texts: readonly string[]) => core !== '' && texts.some((text) => coreOf(text) === core)
  if (isOf(ownData)) found.add('restricted.user_info')
  if (isOf(words)) found.add('restricted.words')
  if (rejects.repetitionAndSequence && isOneRepeated(folded(password))) found.add('restricted.repetition')

  const rules: Rule[] = [
    ...(rejects.repetitionAndSequence
      ? [
          { code: 'restricted.repetition' as const, lengthAt: repetitionAt },
          { code: 'restricted.sequence' as const, lengthAt: sequenceAt },
        ]
      : []),
    { code: 'restricted.words', lengthAt: wordAt(words) },
    { code: 'restricted.user_info', lengthAt: wordAt(ownData) },
  ]
  const characters = [...folded(password)]
  const isPredictable = characters.map(() => false)
  const met = new Set<RejectionCode>()
  for (const place of characters.keys()) {
    for (const { code, lengthAt } of rules) {
      const length = lengthAt(characters, place)
      if (length === 0) continue
      met.add(code)
      isPredictable.fill(true, place, place + length)
    }
  }
  if (isPredictable.filter((is) => !is).length < unpredictable) for (const code of met) found.add(code)
  return [...found].map((code) => ({ code: `password_rejected.${code}` as const }))
}

const folded = (text: string): string => normalizedPassword(text).toLowerCase()

/** The texts about a user that a password must not consist of, in lower case. */
const ownDataOf = ({ username, email, phone, name }: AboutUser): string[] => {
  const texts = [
    username,
    email,
    email?.slice(0, email.lastIndexOf('@')),
    phone?.replace(/\D/g, ''),
    name?.replace(/\s+/g, ''),
    ...(name?.split(/\s+/) ?? []),
  ]
  const known = texts.filter((text) => text != null).map(folded)
  return [...new Set(known.filter((text) => [...text].length >= shortestOwnData))]
}
