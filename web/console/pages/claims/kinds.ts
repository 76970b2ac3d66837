/** Of whom the tokens are that a script is for. */
export const kinds = {
  'access-token': { title: 'Tokens of people', input: 'UserTokenInput' },
  'client-credentials': { title: 'Tokens of applications', input: 'ApplicationTokenInput' },
} as const

export type TokenType = keyof typeof kinds
