import { z } from 'zod'
import type { TrustedIssuer } from '../caller/authenticate.ts'
import type { Revocations } from '../caller/revocations.ts'

/** Whose tokens a gateway takes, with which keys, and how far it knows what was revoked. */

const trustedIssuer = z.object({
  issuer: z.string(),
  keys: z.array(
    z.object({
      kid: z.string(),
      alg: z.string(),
      kty: z.string(),
      /** When the gateway first had it. RFC 3339. */
      since: z.string(),
    }),
  ),
  /** What is wrong with the keys. */
  problem: z.string().optional(),
  /** The feed of what it revokes; absent: it is not followed. */
  revocations: z
    .object({
      /** Kept now. */
      entries: z.number(),
      /** Since the feed was last heard of, in ms; absent: it was not read yet. */
      silent: z.number().optional(),
      problem: z.string().optional(),
    })
    .optional(),
})
export const trustedIssuers = z.array(trustedIssuer)
export type TrustedIssuers = z.output<typeof trustedIssuers>

export const issuersInspection = z.object({ issuers: trustedIssuers })

export const sessionState = z.object({ ended: z.boolean(), followed: z.boolean() })
export type SessionState = z.output<typeof sessionState>

export const inspectIssuers = (
  issuers: readonly TrustedIssuer[],
  revocations: readonly Revocations[],
): TrustedIssuers =>
  issuers.map(({ issuer, keys }) => {
    const { detail } = keys.status()
    const followed = revocations.find((one) => one.issuer === issuer)
    return {
      issuer,
      keys: keys.all().map(({ since, ...key }) => ({ ...key, since: since.toISOString() })),
      ...(detail !== undefined && { problem: detail }),
      ...(followed && { revocations: followed.state() }),
    }
  })

export const inspectSession = (sid: string, revocations: readonly Revocations[]): SessionState => ({
  ended: revocations.some((one) => one.hasEnded(sid)),
  followed: revocations.length > 0,
})
