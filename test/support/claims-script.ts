import type { TestIssuer } from './issuer.ts'

/** A script of custom claims, of the body of its function. */
export const claimsScript = (body: string): string =>
  `const getCustomJwtClaims = async ({ token, context, environmentVariables, api }) => {\n${body}\n}`

export interface PutClaimsScript {
  /** Default: of users' access tokens. */
  kind?: 'access-token' | 'client-credentials'
  environmentVariables?: Record<string, string>
  blockIssuanceOnError?: boolean
}

/** Puts one in force; must succeed. */
export const putClaimsScript = async (
  issuer: TestIssuer,
  body: string,
  { kind = 'access-token', ...members }: PutClaimsScript = {},
): Promise<void> => {
  const script = claimsScript(body)
  const answer = await issuer.api('PUT', `/configs/jwt-customizer/${kind}`, { script, ...members })
  if (answer.body.script !== script) throw new Error(`no script: ${answer.status} ${JSON.stringify(answer.body)}`)
}
