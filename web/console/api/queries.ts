import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { Calls } from '../generated/api.ts'
import { type Answer, call } from './call.ts'
import { type Input, isAllowed, type OperationId } from './operations.ts'
import { isProblem, notAllowed } from './problem.ts'
import { useRefusal, useSession } from './session.tsx'
import { signInAgain } from './sign-in.ts'

/** Kept while the tab is open; asked again when the tab is looked at, never under the pointer. */
export const createQueryClient = () =>
  new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        refetchOnWindowFocus: true,
        retry: (failures, error) => failures < 2 && isProblem(error) && (error.status === 0 || error.status >= 500),
      },
    },
  })

interface ReadOptions<Id extends OperationId> {
  /** False: not yet. */
  when?: boolean | undefined
  /** How often it is read again while the page is looked at, in ms; false: no more. */
  everyMs?: number | ((last: Calls[Id]['answer'] | undefined) => number | false) | undefined
}

/**
 * Reads by an operation. The page before stays while the next one is fetched. Whoever may not call it gets the reason
 * as the error, and nothing is asked.
 */
export const useRead = <Id extends OperationId>(
  id: Id,
  input: Input<Id> = {},
  { when = true, everyMs = 0 }: ReadOptions<Id> = {},
) => {
  const refusal = useRefusal(id)
  const query = useQuery({
    queryKey: [id, input],
    queryFn: ({ signal }): Promise<Answer<Calls[Id]['answer']>> => call(id, input, { signal }),
    enabled: when && refusal === undefined,
    refetchInterval: ({ state: { data } }) =>
      typeof everyMs === 'function' ? everyMs(data?.body) : everyMs > 0 && everyMs,
    placeholderData: keepPreviousData,
  })
  return refusal === undefined ? query : { ...query, error: notAllowed(refusal) }
}

/** The same for what nobody needs to know why they may not. */
export const useReadIfAllowed = <Id extends OperationId>(
  id: Id,
  query: NonNullable<Input<Id>['query']> = {},
  { when = true, ...options }: ReadOptions<Id> = {},
) => {
  const { scopes } = useSession()
  return useRead(id, { query } as Input<Id>, { ...options, when: when && isAllowed(id, scopes) })
}

/**
 * Changes by an operation; afterwards everything on the page is asked anew. Where a fresh proof of who one is is
 * missing, the person signs in and comes back to this address: what they typed is kept (`components/draft.ts`).
 */
export const useChange = <Id extends OperationId>(id: Id) => {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async ({ ifMatch, ...input }: Input<Id> & { ifMatch?: string | undefined }) => {
      const answer = await call(id, input, { ifMatch })
      return answer.body
    },
    // Not waited for: whoever deletes something has left its page by then.
    onSuccess: () => void client.invalidateQueries(),
    onError: (error) => {
      if (isProblem(error, 'console.step_up_required')) signInAgain({ stepUp: true })
      // Somebody else was first: the page shows what is there now.
      if (isProblem(error, 'entity.version_mismatch')) void client.invalidateQueries()
    },
  })
}
