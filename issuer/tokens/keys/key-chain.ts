import type { SigningAlgorithmName } from './signing-algorithms.ts'

/**
 * Keys that succeed one another. `signing` signs access tokens and all else of ours, ID tokens too; `idToken` signs ID
 * tokens of clients that ask for RS256, which OpenID Connect Discovery §3 wants of everybody.
 */
export type KeyChain = 'signing' | 'idToken'

export const keyChains: readonly KeyChain[] = ['signing', 'idToken']

/** Of the first key, when nothing else is asked for. */
export const firstAlgorithm = { signing: 'ES256', idToken: 'RS256' } as const satisfies Record<
  KeyChain,
  SigningAlgorithmName
>
