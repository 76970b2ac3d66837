import { z } from 'zod'
import type { Claims } from './profile.ts'

/** Who somebody is elsewhere, as an identity provider says and as we have checked. */
export interface FederatedAssertion {
  connectorId: string
  kind: 'social' | 'sso'
  /** How identities name the provider: `google`. Of an enterprise connector its id. */
  target: string
  /** Unique and never given anew within the connector. */
  subject: string
  /** Where the connector led then, for `Federation.isStillFrom`. */
  origin: string
  /** Of the ID token; absent without one. */
  issuer?: string
  email?: string
  /**
   * The provider says that the address is the person's. Of an enterprise connector besides: its domain is one of the
   * connector's. Nothing may be linked by an address without it.
   */
  emailVerified: boolean
  /** Digits of the E.164 form. */
  phone?: string
  phoneVerified: boolean
  name?: string
  /** `https:` only. */
  avatar?: string
  /** All claims, for `details.rawData`. No tokens. */
  raw: Record<string, unknown>
}

// What does not fit is left out: a picture too long keeps nobody from signing in.
const email = z
  .string()
  .max(128)
  .regex(/^[^\s@]+@[^\s@]+\.[^\s@]+$/)
const phone = z
  .string()
  .max(32)
  .regex(/^\+[\d ().-]+$/)
  .transform((text) => text.replace(/\D/g, ''))
const avatar = z.url({ protocol: /^https$/ }).max(2_048)
const name = z
  .string()
  .transform((text) => [...text.replace(/\p{C}/gu, ' ').trim()].slice(0, 128).join(''))
  .refine((text) => text !== '')

const fitting = <Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> | undefined =>
  schema.safeParse(value).data

/** Of JSON; the claims of a person take some hundred bytes. */
const maxRawBytes = 16_384
/** They belong to the exchange, not to the person. */
const ofTheExchange = new Set(['aud', 'exp', 'iat', 'nbf', 'nonce', 'at_hash', 'c_hash', 'azp', 'jti', 'auth_time'])

const rawOf = (claims: Claims): Record<string, unknown> => {
  const raw = Object.fromEntries(Object.entries(claims).filter(([member]) => !ofTheExchange.has(member)))
  return Buffer.byteLength(JSON.stringify(raw)) <= maxRawBytes ? raw : { sub: claims.sub }
}

export const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1).toLowerCase()

export const assertionOf = (
  connector: { id: string; kind: 'social' | 'sso'; target: string; domains: readonly string[]; origin: string },
  claims: Claims,
  says: { emailVerified: boolean; name?: string | undefined; raw?: Record<string, unknown> },
): FederatedAssertion => {
  const { kind, domains } = connector
  const [address, number] = [fitting(email, claims.email), fitting(phone, claims.phone_number)]
  const called = fitting(name, claims.name) ?? fitting(name, says.name)
  const picture = fitting(avatar, claims.picture)
  return {
    connectorId: connector.id,
    kind,
    target: connector.target,
    origin: connector.origin,
    subject: String(claims.sub),
    ...(typeof claims.iss === 'string' && { issuer: claims.iss }),
    ...(address !== undefined && { email: address }),
    // An enterprise's provider speaks for its own domains: what it says of another's people counts for nothing.
    emailVerified:
      address !== undefined && says.emailVerified && (kind === 'social' || domains.includes(domainOf(address))),
    ...(number !== undefined && { phone: number }),
    phoneVerified: number !== undefined && claims.phone_number_verified === true,
    ...(called !== undefined && { name: called }),
    ...(picture !== undefined && { avatar: picture }),
    raw: says.raw ?? rawOf(claims),
  }
}
