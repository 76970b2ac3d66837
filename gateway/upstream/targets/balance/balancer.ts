import type { Balance } from '../../../config/settings/targets.ts'
import { leastRequests } from './least-requests.ts'
import { rendezvous } from './rendezvous.ts'
import { createRoundRobin } from './round-robin.ts'

/** What a balancer looks at. */
export interface Candidate {
  /** The same in every process, and after a restart. */
  readonly name: string
  /** Above 0; not whole while it starts slowly. */
  readonly currentWeight: number
  readonly running: number
}

/** @param candidates At least one. */
export type Balancer = <One extends Candidate>(candidates: readonly One[], key: string | undefined) => One

/** Without a key there is nothing to hash. */
const byKey: Balancer = (candidates, key) =>
  key === undefined ? leastRequests(candidates) : rendezvous(candidates, key)

export const createBalancer = (balance: Balance): Balancer => {
  if (typeof balance === 'object') return byKey
  return balance === 'round-robin' ? createRoundRobin() : leastRequests
}
