import type { Pool } from 'undici'

/**
 * What came of a request. `failed`: no connection, no answer in time, a connection lost before the answer, 502, 503,
 * 504. `neither` says nothing about the target: the client went away, or sent too slowly.
 */
export type Outcome = 'answered' | 'failed' | 'neither'

/** A server that answers for an upstream. */
export interface Target {
  /** Its URL; of a name that is several targets, with the address. For metrics, logs, `inspect`. */
  readonly name: string
  /** Of the URL as written, for `Host` and SNI. */
  readonly origin: string
  /** Where to connect instead of looking up the name. */
  readonly address: string | undefined
  /** Put before every path; without a final slash. */
  readonly basePath: string
  readonly labels: Readonly<Record<string, string>>
  readonly pool: Pool
  /** Requests and WebSockets that are with it now. */
  readonly running: number
  /** A request or WebSocket is handed to it. To be called right after it was picked. */
  begin(): void
  /** Once for each `begin`, when nothing is under way any more. After it the connection may be closed. */
  end(outcome: Outcome): void
}

/** As `/inspect` of the admin listener and `surrogate gateway inspect` tell it. */
export interface TargetState {
  name: string
  labels: Readonly<Record<string, string>>
  weight: number
  /** `out`: left out. `used`: would be left out, if not too many were. */
  state: 'in' | 'out' | 'used'
  health: 'healthy' | 'unhealthy' | 'unknown'
  /** Why the last check was bad. */
  reason?: string
  ejectedForMs?: number
  /** How often it was ejected, since it came. */
  ejections: number
  /** Less than 1 while it starts slowly. */
  share: number
  running: number
  answered: number
  failed: number
  neither: number
}
