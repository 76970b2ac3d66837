import type { AccessTokenClaims } from '../tokens/access-token.ts'
import { type GrantType, grantTypes } from '../tokens/grant-types.ts'
import type { SignInRecord } from '../tokens/sessions/session.ts'
import type { ScriptKind } from './claims-script.ts'
import type { ContextFacts } from './context-store.ts'
import type {
  ApplicationToken,
  ApplicationTokenContext,
  Interaction,
  Json,
  UserToken,
  UserTokenContext,
} from './custom-claims.ts'

/** The token that a script is asked about, before it is signed. */
export interface ScriptedToken extends Omit<AccessTokenClaims, 'aud' | 'amr' | 'authTime' | 'acr' | 'cnf' | 'custom'> {
  /** Undefined: only userinfo accepts it. */
  aud: string | undefined
  kind: ScriptKind
  /** Default: that of a token exchange for a user, of client credentials for an application. */
  gty?: GrantType | undefined
  /** How the user signed in; in tokens that came of it. */
  interaction?: SignInRecord | undefined
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
  const { gty = grantTypes.tokenExchange, interaction } = token
  const subjectTokenContext = (token.subjectTokenContext ?? {}) as { [member: string]: Json }
  return {
    token: {
      kind: 'AccessToken',
      gty,
      accountId: sub,
      ...fields,
      ...(sid !== undefined && { sid }),
      ...(act !== undefined && { act }),
    },
    context: {
      user,
      ...(gty === grantTypes.tokenExchange && { grant: { type: gty, subjectTokenContext } }),
      ...(interaction && { interaction: interaction as Interaction }),
      ...surroundings,
    },
  }
}
