import { useSyncExternalStore } from 'react'
import type { OperationId } from './operations.ts'

/** What this tab has called, for the page that shows it; without bodies, which may be secret. */
export interface LoggedCall {
  id: OperationId
  method: string
  path: string
  status: number
  ms: number
  requestId: string | undefined
  at: number
}

const kept = 200
let calls: readonly LoggedCall[] = []
const listeners = new Set<() => void>()

export const rememberCall = (entry: LoggedCall): void => {
  calls = [entry, ...calls].slice(0, kept)
  for (const tell of listeners) tell()
}

/** Newest first. */
export const useCallLog = (): readonly LoggedCall[] =>
  useSyncExternalStore(
    (tell) => {
      listeners.add(tell)
      return () => listeners.delete(tell)
    },
    () => calls,
  )
