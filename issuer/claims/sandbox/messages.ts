/** What the pool (`sandbox.ts`) and its threads (`thread.ts`) say to each other, and the limits that both keep. */

export interface SandboxLimits {
  /** Of a call, in ms of the thread's processor time. */
  cpuMs: number
  /** Of a call, in ms from its start, waiting for answers included. The thread that misses it is ended. */
  wallMs: number
  /** Of a call, in bytes. */
  heapBytes: number
  stackBytes: number
  /** Requests of a call. */
  fetches: number
}

/** Of what a script returns, as JSON. */
export const maxResultBytes = 16_384

/** What a thread is given to begin with. */
export interface ThreadStart {
  module: WebAssembly.Module
  limits: SandboxLimits
  /** How far it steps back where others need the processor, 0 to 19 (Linux only). */
  nice: number
  /** Calls after which its memory is thrown away for a new one: what WebAssembly has taken it never gives back. */
  callsPerInstance: number
  /** Whether scripts may ask others. */
  offersFetch: boolean
}

export type ToThread = { call: CallMessage } | { fetched: number; answer: FetchedAnswer | { failed: string } }

export interface CallMessage {
  script: string
  /** JSON of `token` and `context`; undefined only looks whether the script can be used at all. */
  input: string | undefined
  environmentVariables: Readonly<Record<string, string>>
}

export type FromThread = { ready: true } | { fetch: number; request: FetchRequest } | { done: CallResult }

export interface CallResult {
  outcome: ScriptOutcome
  /** What the script wrote to its console, without the values of its environment variables. */
  logs: readonly string[]
  /** Processor time that the script took. */
  cpuMs: number
}

/** As the script wrote it. */
export interface FetchRequest {
  url: string
  method: string
  headers: Record<string, string>
  body: string | undefined
}

export interface FetchedAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

export type ScriptOutcome =
  /** The JSON of what was returned; undefined when there is none. */
  | { returned: string | undefined }
  /** `api.denyAccess` was called. */
  | { denied: string }
  | { failed: ScriptFailure; message: string }

/**
 * `error`: the script threw, or cannot be read. `result`: what it returned is no JSON. `cpu`, `wall`, `memory`: it went
 * beyond a limit. `unsettled`: it waits for something that never comes. `stopped`: its thread ended, not through its
 * fault. `busy`: it was not begun.
 */
export type ScriptFailure = 'error' | 'result' | 'cpu' | 'wall' | 'memory' | 'unsettled' | 'stopped' | 'busy'

export const beyondCpu = (cpuMs: number): ScriptOutcome => ({
  failed: 'cpu',
  message: `It took more than ${cpuMs} ms of processor time.`,
})
