import type { ReactNode } from 'react'
import type { Need } from '../api/operations.ts'
import { useRefusal } from '../api/session.tsx'
import { RefusalContext } from './button.tsx'

/**
 * What stands in it calls the operation, or needs one of these permissions: whoever may not sees it disabled, with what
 * is missing.
 */
export const Allowed = ({ operation, children }: { operation: Need; children: ReactNode }) => (
  <RefusalContext value={useRefusal(operation)}>{children}</RefusalContext>
)
