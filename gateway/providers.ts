import { fetchJson, type JsonFetcher } from '../platform/jwt/fetch-json.ts'
import { watchPolicies } from '../policies/decide.ts'
import { type TakeTokens, takeTokens } from './authorize/rate-limit.ts'
import { openProofRecords } from './caller/dpop/proof-records.ts'
import { followRevocations } from './caller/revocation-reader.ts'

/** Where a gateway gets what several processes can share. A worker gets it from its primary process. */
export interface Providers {
  watchPolicies: typeof watchPolicies
  /** `cooldownMs`: how often the same document is asked for at most. */
  fetchJson: (settings: { timeoutMs: number; maxBytes: number; cooldownMs: number }) => JsonFetcher
  followRevocations: typeof followRevocations
  takeTokens: TakeTokens
  openProofRecords: typeof openProofRecords
}

/** Those of a process of its own. */
export const ownProviders: Providers = {
  watchPolicies,
  fetchJson,
  followRevocations,
  takeTokens,
  openProofRecords,
}
