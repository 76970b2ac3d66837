import { type ExtendedClaim, extendedClaims } from '../../tokens/id-tokens/id-token-settings.ts'
import type { UserinfoFacts } from './userinfo-store.ts'

type Claims = Readonly<Record<string, unknown>>

const addressClaims = ({ address }: UserinfoFacts['profile']): Claims => ({
  address: address && {
    formatted: address.formatted,
    street_address: address.streetAddress,
    locality: address.locality,
    region: address.region,
    postal_code: address.postalCode,
    country: address.country,
  },
})

const profileClaims = ({ profile, ...user }: UserinfoFacts): Claims => ({
  name: user.name,
  family_name: profile.familyName,
  given_name: profile.givenName,
  middle_name: profile.middleName,
  nickname: profile.nickname,
  preferred_username: profile.preferredUsername ?? user.username,
  username: user.username,
  profile: profile.profile,
  picture: user.avatar,
  website: profile.website,
  gender: profile.gender,
  birthdate: profile.birthdate,
  zoneinfo: profile.zoneinfo,
  locale: profile.locale,
  // OpenID Connect Core §5.1: seconds.
  updated_at: user.updatedAt,
  created_at: user.createdAt,
})

/** What each scope lets a client know (OpenID Connect Core §5.4; the last five are ours). `sub` is always told. */
export const claimsByScope: Readonly<Record<string, (user: UserinfoFacts) => Claims>> = {
  profile: profileClaims,
  email: ({ primaryEmail: email, isEmailVerified }) => ({
    email,
    email_verified: email === null ? null : isEmailVerified,
  }),
  phone: ({ primaryPhone: number, isPhoneVerified }) => ({
    phone_number: number,
    phone_number_verified: number === null ? null : isPhoneVerified,
  }),
  address: ({ profile }) => addressClaims(profile),
  custom_data: ({ customData }) => ({ custom_data: customData }),
  identities: ({ identities }) => ({ identities }),
  roles: ({ roles }) => ({ roles }),
  'urn:logto:scope:organizations': ({ organizations: data }) => ({
    organizations: data?.map(({ id }) => id),
    organization_data: data,
  }),
  'urn:logto:scope:organization_roles': ({ organizationRoles }) => ({ organization_roles: organizationRoles }),
}

/** The claims that the scopes of a token allow. What is not known of the user is left out (§5.3.2). */
export const userinfoClaims = (user: UserinfoFacts, scopes: readonly string[]): Claims => {
  const claims: Record<string, unknown> = { sub: user.id }
  for (const [scope, claimsOf] of Object.entries(claimsByScope)) {
    if (!scopes.includes(scope)) continue
    for (const [name, value] of Object.entries(claimsOf(user))) if (value != null) claims[name] = value
  }
  return claims
}

const extended: ReadonlySet<string> = new Set(extendedClaims)

/** The claims of an ID token: those of userinfo, but of extended ones only the enabled. */
export const idTokenClaims = (
  user: UserinfoFacts,
  scopes: readonly string[],
  enabled: readonly ExtendedClaim[],
): Claims => {
  const names: ReadonlySet<string> = new Set(enabled)
  return Object.fromEntries(
    Object.entries(userinfoClaims(user, scopes)).filter(([name]) => !extended.has(name) || names.has(name)),
  )
}
