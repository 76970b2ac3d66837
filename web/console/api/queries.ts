import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { Calls } from '../generated/api.ts'
import { type Answer, call } from './call.ts'
import type { Input, OperationId } from './operations.ts'
import { isProblem } from './problem.ts'
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

/** How often something is read again, in ms; false: no more. */
type Again<Body> = number | false | ((last: Body | undefined) => number | false)

/**
 * Reads by an operation; `when` false: not yet; `everyMs`: again and again, while the page is looked at. The page
 * before stays while the next one is fetched.
 */
export const useRead = <Id extends OperationId>(
  id: Id,
  input: Input<Id> = {},
  { when = true, everyMs = false }: { when?: boolean; everyMs?: Again<Calls[Id]['answer']> } = {},
) =>
  useQuery({
    queryKey: [id, input],
    queryFn: ({ signal }): Promise<Answer<Calls[Id]['answer']>> => call(id, input, { signal }),
    enabled: when,
    refetchInterval: ({ state: { data } }) => (typeof everyMs === 'function' ? everyMs(data?.body) : everyMs),
    placeholderData: keepPreviousData,
  })

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
