import type { Claims } from './profile.ts'

/** For tests alone (`MOCK_CONNECTORS`): a provider that knows whoever it is told. */
export const mockSocial = {
  url: ({ redirectUri, state }: { redirectUri: string; state: string }): string =>
    `http://mock-social/?${new URLSearchParams({ state, redirect_uri: redirectUri, scope: 'email profile' })}`,

  claims(parameters: URLSearchParams): Claims {
    const { userId, phone, avatar, ...rest } = Object.fromEntries(parameters)
    return {
      ...rest,
      sub: userId ?? crypto.randomUUID(),
      email_verified: rest.email !== undefined,
      ...(phone !== undefined && { phone_number: phone.replace(/^\+?/, '+'), phone_number_verified: true }),
      ...(avatar !== undefined && { picture: avatar }),
    }
  },
}

/** Claims of an enterprise's ID token instead of a code. */
export const mockClaims = (parameters: URLSearchParams): Claims | undefined => {
  if (parameters.has('code') || !parameters.has('sub')) return undefined
  const { email_verified: verified, ...claims } = Object.fromEntries(parameters)
  return { ...claims, email_verified: verified === 'true' }
}
