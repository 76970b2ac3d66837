import { useQueries } from '@tanstack/react-query'
import type { Calls } from '../generated/api.ts'
import { type Answer, call } from './call.ts'
import type { Input, OperationId } from './operations.ts'

/** Reads the same of several things. `bodies` undefined: not all of it is there yet. */
export const useReads = <Id extends OperationId>(id: Id, inputs: readonly Input<Id>[]) =>
  useQueries({
    queries: inputs.map((input) => ({
      queryKey: [id, input],
      queryFn: ({ signal }: { signal: AbortSignal }): Promise<Answer<Calls[Id]['answer']>> =>
        call(id, input, { signal }),
    })),
    combine: (results) => ({
      error: results.find(({ error }) => error)?.error,
      bodies: results.every(({ data }) => data) ? results.map(({ data }) => data!.body) : undefined,
    }),
  })
