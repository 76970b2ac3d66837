import type { PolicySet } from '../../policies/decide.ts'
import type { GatewayConfig } from '../config/load.ts'
import type { Route } from '../config/route.ts'
import type { Router } from '../routing/router.ts'
import type { AnswerOf, DecisionRecord, ShadowDifference, Why } from './api.ts'
import type { Decisions } from './decision-ring.ts'
import type { Evaluation } from './evaluation.ts'
import type { Rules } from './rules.ts'
import type { GatewayInspection } from './upstreams.ts'

/** What is inspected: a gateway, in this process or in its workers. */
export interface Inspected {
  decisions: Decisions
  upstreams(): Promise<GatewayInspection>
  /** In force. */
  policies(): PolicySet
  /** Newest first. */
  differences(): Promise<ShadowDifference[]>
}

export interface Routes {
  routes: readonly Route[]
  router: Router<Route>
}

/** What is told beside the route of a request. */
export interface Explanations {
  match(routes: Routes, method: string, url: string): AnswerOf<'match'>
  why(parts: {
    record: DecisionRecord
    config: GatewayConfig
    routes: Routes
    policies: PolicySet
    evaluation: Evaluation
    rules: Rules
  }): Promise<Why>
}
