import { newId } from '../../platform/ids.ts'

/**
 * The claim `sid`. Of a token that a person got by signing in it names an authorization and begins with `ps_`; of an
 * impersonation it names the impersonation session. Tokens of applications and personal access tokens have none.
 */
export const signInPrefix = 'ps_'

/** For a new authorization: 93 random bits. */
export const newSignInSid = (): string => signInPrefix + newId(18)

export const isSignInSid = (sid: string): boolean => sid.startsWith(signInPrefix)

/** Whether a token with this `sid` came of an impersonation. */
export const isImpersonationSid = (sid: string | null | undefined): sid is string => !!sid && !isSignInSid(sid)
