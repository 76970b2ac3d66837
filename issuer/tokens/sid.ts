import { newId } from '../../platform/ids.ts'
import { signInPrefix } from '../../platform/jwt/sid.ts'

export { isImpersonationSid, signInPrefix } from '../../platform/jwt/sid.ts'

/** For a new authorization: 93 random bits. */
export const newSignInSid = (): string => signInPrefix + newId(18)
