import type { MessageKey } from './messages/translation.ts'

/** What people are called by. */
export type IdentifierName = 'username' | 'email' | 'phone'
export type AddressName = 'email' | 'phone'

const labels = {
  email: 'email',
  phone: 'phone',
  username: 'username',
  'email phone': 'emailOrPhone',
  'email username': 'emailOrUsername',
  'phone username': 'phoneOrUsername',
  'email phone username': 'identifier',
} as const satisfies Record<string, MessageKey>

const missing = {
  email: 'emailMissing',
  phone: 'phoneMissing',
  username: 'usernameMissing',
  'email phone': 'emailOrPhoneMissing',
  'email username': 'emailOrUsernameMissing',
  'phone username': 'phoneOrUsernameMissing',
  'email phone username': 'identifierMissing',
} as const satisfies Record<string, MessageKey>

const setOf = (names: readonly IdentifierName[]) => names.toSorted().join(' ') as keyof typeof labels

/** The name of a field that takes any of these; without any it takes all. */
export const identifierLabel = (names: readonly IdentifierName[]) => labels[setOf(names)] ?? 'identifier'
export const identifierMissing = (names: readonly IdentifierName[]) => missing[setOf(names)] ?? 'identifierMissing'

/** What a browser offers for it, and the keys that it shows on a telephone. */
export const addressInput = (types: readonly AddressName[]): { type: string; autocomplete: string } => {
  if (types.length !== 1) return { type: 'text', autocomplete: 'username' }
  return types[0] === 'email' ? { type: 'email', autocomplete: 'email' } : { type: 'tel', autocomplete: 'tel' }
}

/** As people write it. */
export const shownAddress = ({ type, address }: { type: AddressName; address: string }): string =>
  type === 'phone' ? `+${address}` : address
