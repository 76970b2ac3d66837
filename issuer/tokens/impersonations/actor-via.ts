import { isImpersonationSid } from '../../../platform/jwt/sid.ts'
import type { ActorVia } from './impersonation.ts'

/** What a token that shows an actor came of. */
export const actorViaOf = (token: { sid: string | null | undefined; fromPersonalAccessToken: boolean }): ActorVia => {
  if (isImpersonationSid(token.sid)) return 'subject_token'
  return token.fromPersonalAccessToken ? 'personal_access_token' : 'sign_in'
}
