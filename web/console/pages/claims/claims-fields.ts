import type { Field } from '../../components/field.ts'
import type { TokenType } from './kinds.ts'
import { suggestionsFor } from './suggestions.ts'

export const fieldsOf = (tokenType: TokenType): Readonly<Record<string, readonly Field[]>> => ({
  Script: [
    {
      ...{ path: 'script', label: 'Script', kind: 'code', isRequired: true, suggest: suggestionsFor(tokenType) },
      hint: 'JavaScript that defines getCustomJwtClaims. Names are completed after a dot, and by Ctrl Space.',
    },
  ],
  'What it is given besides': [
    {
      ...{ path: 'environmentVariables', label: 'Environment variables', kind: 'pairs', empty: undefined },
      hint: 'Keys, addresses, switches: environmentVariables.NAME. Encrypted at rest; what you type here is not kept in this tab.',
    },
    {
      ...{ path: 'blockIssuanceOnError', label: 'No token when it fails', kind: 'flag' },
      hint: 'Off: when it throws or takes too long, the token is issued without its claims. Then it decides nothing that matters.',
    },
  ],
})
