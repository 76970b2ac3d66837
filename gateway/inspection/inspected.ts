import type { PolicySet } from '../../policies/decide.ts'
import type { ShadowDifference } from './decision-answers.ts'
import type { Decisions } from './decision-ring.ts'
import type { SessionState, TrustedIssuers } from './trusted-issuers.ts'
import type { GatewayInspection } from './upstreams.ts'

/** What is inspected: a gateway, in this process or in its workers. */
export interface Inspected {
  decisions: Decisions
  upstreams(): Promise<GatewayInspection>
  issuers(): Promise<TrustedIssuers>
  /** `sid` of tokens. */
  session(sid: string): Promise<SessionState>
  /** In force. */
  policies(): PolicySet
  /** Newest first. */
  differences(): Promise<ShadowDifference[]>
}
