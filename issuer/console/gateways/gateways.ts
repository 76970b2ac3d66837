import type { GatewayAddress } from '../console-settings.ts'

/** A gateway that the console asks: its inspection listener, and the `aud` of tokens for it. */
export interface Gateway extends GatewayAddress {
  audience: string
}

/** Whether and how a gateway answers. `refuses`: it does, but not what it was asked for. */
export type GatewayState = 'answers' | 'away' | 'refuses'

/** Why a gateway did not give what it was asked for: a sentence, in our words. */
export class GatewayTrouble extends Error {
  override readonly name = 'GatewayTrouble'
  readonly state: Exclude<GatewayState, 'answers'>
  /** Of its answer, where there was one. */
  readonly status: number | undefined

  constructor(state: GatewayTrouble['state'], because: string, options: ErrorOptions & { status?: number } = {}) {
    super(because, options)
    this.state = state
    this.status = options.status
  }
}
