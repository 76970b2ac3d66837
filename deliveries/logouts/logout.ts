/** A logout token that the issuer wrote and the relay sends once (OpenID Connect Back-Channel Logout 1.0 §2.5). */

/** What the token of an authorization is sealed for. */
export const logoutContext = (authorizationId: string) => `logout:${authorizationId}`

/** How long an application may take to answer, in ms. */
export const logoutTimeoutMs = 5_000
