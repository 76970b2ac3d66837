import type { Suggestion } from '../../components/field.ts'
import { claimsTypes } from '../../generated/claims-types.ts'
import { kinds, type TokenType } from './kinds.ts'

type Members = Readonly<Record<string, { base?: string; members: readonly (Suggestion & { optional: boolean })[] }>>

const types: Members = claimsTypes

const membersOf = (type: string): (Suggestion & { optional: boolean })[] => {
  const found = types[type]
  return found ? [...found.members, ...(found.base ? membersOf(found.base) : [])] : []
}

/** `ClaimsRole[]`, `ClaimsOrganization | null` → the interface in it. */
const nameIn = (type: string): string => type.match(/\w+/g)?.find((word) => word in types) ?? ''

/** What may follow a path in a script: `context.user.roles[0].` → the members of a role. */
export const suggestionsFor =
  (tokenType: TokenType) =>
  (before: string): readonly Suggestion[] => {
    const names = before
      .replaceAll(/\?|\[[^\]]*\]/g, '')
      .split('.')
      .filter((name) => name !== '')
    const last = names.reduce<string>((type, name) => {
      const member = membersOf(type).find((one) => one.name === name)
      return member ? nameIn(member.type) : ''
    }, kinds[tokenType].input)
    return membersOf(last).map(({ name, type, optional, says }) => ({
      name,
      type: optional ? `${type} | undefined` : type,
      ...(says && { says }),
    }))
  }
