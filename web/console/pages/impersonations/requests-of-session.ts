import { useQuery } from '@tanstack/react-query'
import { type Decision, decisionsOf } from '../../api/gateways.ts'

/** What gateways decided about the requests of a session, and which of them did not say. */
export interface RequestsOfSession {
  decisions: readonly Decision[]
  more: boolean
  missing: readonly { gateway: string; because: string }[]
  error: unknown
}

/** `mayChange`: asked again and again while the page is looked at. */
export const useRequests = (sid: string, mayChange: boolean): RequestsOfSession => {
  const { data, error } = useQuery({
    queryKey: ['decisions of session', sid],
    queryFn: ({ signal }) => decisionsOf({ sid, limit: 1_000 }, signal),
    refetchInterval: mayChange && 2_000,
  })
  return { decisions: data?.decisions ?? [], more: data?.more ?? false, missing: data?.missing ?? [], error }
}
