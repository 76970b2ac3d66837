import { newId } from '../../platform/ids.ts'
import { signInSidPrefix } from '../../platform/jwt/sid.ts'

/** The `sid` of a new authorization: 93 random bits. */
export const newSignInSid = (): string => signInSidPrefix + newId(18)
