import { z } from 'zod'
import { timestamp } from '../../base/schemas.ts'
import type { StoredKey } from './key-store.ts'
import { type SigningAlgorithmName, signingAlgorithmNames } from './signing-algorithms.ts'

const statuses = { next: 'Next', active: 'Current', retiring: 'Previous' } as const satisfies Record<
  StoredKey['state'],
  string
>

/** The names that existing clients know, beside our own. */
const families = { ES256: 'EC', EdDSA: 'EdDSA', RS256: 'RSA' } as const satisfies Record<SigningAlgorithmName, string>

/** A signing key as the Management API shows it. Times in ms. */
export const keyRecord = z.strictObject({
  /** The `kid`. */
  id: z.string(),
  createdAt: timestamp,
  signingKeyAlgorithm: z.enum(['EC', 'EdDSA', 'RSA']),
  /** The `alg` of its tokens. */
  algorithm: z.enum(signingAlgorithmNames),
  status: z.enum(['Next', 'Current', 'Previous']),
  /** When it signs, or began to. Of the first key for ID tokens: when discovery lists its algorithm. */
  effectiveAt: timestamp,
  /** Of a previous key: when no token that it signed is good any more, and it is dropped. */
  expiresAt: timestamp.nullable(),
})
export type KeyRecord = z.output<typeof keyRecord>

/** Newest first. */
export const toKeyRecords = (keys: readonly StoredKey[]): KeyRecord[] =>
  keys.toReversed().map(({ kid, algorithm, state, createdAt, activatedAt, expiresAt }) => ({
    id: kid,
    createdAt: createdAt.getTime(),
    signingKeyAlgorithm: families[algorithm],
    algorithm,
    status: statuses[state],
    effectiveAt: (activatedAt ?? createdAt).getTime(),
    expiresAt: expiresAt?.getTime() ?? null,
  }))

const algorithmNames = { EC: 'ES256', RSA: 'RS256' } as const satisfies Record<string, SigningAlgorithmName>

/** In seconds, at most a year. Less than what verifiers need to learn of the key counts as that. */
const rotationGracePeriod = z.number().int().min(0).max(31_536_000).optional()

export const rotationInput = z.object({
  signingKeyAlgorithm: z
    .enum([...signingAlgorithmNames, 'EC', 'RSA'])
    .transform((name): SigningAlgorithmName => (name === 'EC' || name === 'RSA' ? algorithmNames[name] : name))
    .optional(),
  rotationGracePeriod,
  /** For keys that have leaked: all tokens signed so far end, ID tokens too. */
  now: z.boolean().default(false),
})

/** Their algorithm is not to choose. */
export const idTokenKeyRotationInput = z.strictObject({
  rotationGracePeriod,
  /** For keys that have leaked: all ID tokens that they signed end. */
  now: z.boolean().default(false),
})
