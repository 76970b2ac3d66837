/**
 * The claim `sid` of our issuer. Of a token that a person got by signing in it names an authorization and begins with
 * `ps_`; of an impersonation it names the impersonation session. Tokens of applications and personal access tokens have
 * none.
 */
export const signInSidPrefix = 'ps_'

export const isSignInSid = (sid: string): boolean => sid.startsWith(signInSidPrefix)

/** Whether a token with this `sid` came of an impersonation. */
export const isImpersonationSid = (sid: string | null | undefined): sid is string => !!sid && !isSignInSid(sid)
