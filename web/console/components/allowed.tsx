import type { ReactNode } from 'react'
import type { OperationId } from '../api/operations.ts'
import { useRefusal } from '../api/session.tsx'
import { RefusalContext } from './button.tsx'

/** What stands in it calls the operation: whoever may not sees it disabled, with the permission that is missing. */
export const Allowed = ({ operation, children }: { operation: OperationId; children: ReactNode }) => (
  <RefusalContext value={useRefusal(operation)}>{children}</RefusalContext>
)
