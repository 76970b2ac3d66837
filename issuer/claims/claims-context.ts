import type { AccessTokenClaims } from '../tokens/access-token.ts'
import { grantTypes } from '../tokens/grant-types.ts'
import type { ScriptKind } from './claims-script.ts'
import type { ContextFacts } from './context-store.ts'
import type { ApplicationToken, ApplicationTokenContext, Json, UserToken, UserTokenContext } from './custom-claims.ts'

/** The token that a script is asked about, before it is signed. */
export interface ScriptedToken extends Omit<AccessTokenClaims, 'aud' | 'amr' | 'custom'> {
  /** Undefined: only userinfo accepts it. */
  aud: string | undefined
  kind: ScriptKind
  /** Of the subject token, in a token exchange. */
  subjectTokenContext?: Record<string, unknown> | undefined
}

type Input =
  | { token: UserToken; context: UserTokenContext }
  | { token: ApplicationToken; context: ApplicationTokenContext }

/** What a script is given of a token and its surroundings. Undefined when somebody it is about is there no more. */
export const scriptInput = (token: ScriptedToken, facts: ContextFacts): Input | undefined => {
  const { jti, sub, aud, clientId, scope, iat, exp, sid, act, organizationId } = token
  const { user, application, organization } = facts
  if (!application) return undefined
  const fields = {
    jti,
    ...(aud !== undefined && { aud }),
    scope,
    clientId,
    iat,
    exp,
    ...(organizationId !== undefined && { organizationId }),
  }
  const surroundings = { application, ...(organization && { organization }) }
  if (token.kind === 'client-credentials') {
    return { token: { kind: 'ClientCredentials', gty: grantTypes.clientCredentials, ...fields }, context: surroundings }
  }
  if (!user) return undefined
  const subjectTokenContext = (token.subjectTokenContext ?? {}) as { [member: string]: Json }
  return {
    token: {
      kind: 'AccessToken',
      gty: grantTypes.tokenExchange,
      accountId: sub,
      ...fields,
      ...(sid !== undefined && { sid }),
      ...(act !== undefined && { act }),
    },
    context: { user, grant: { type: grantTypes.tokenExchange, subjectTokenContext }, ...surroundings },
  }
}
