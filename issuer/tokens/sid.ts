import { newId } from '../../platform/ids.ts'
import { signInSidPrefix } from '../../platform/jwt/sid.ts'

export { isImpersonationSid, isSignInSid } from '../../platform/jwt/sid.ts'

/** For a new authorization: 93 random bits. */
export const newSignInSid = (): string => signInSidPrefix + newId(18)
