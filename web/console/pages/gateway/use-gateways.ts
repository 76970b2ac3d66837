import { useQuery } from '@tanstack/react-query'
import { listGateways } from '../../api/gateways.ts'
import { inspecting } from '../../api/inspecting.ts'
import { isAllowed } from '../../api/operations.ts'
import { useSession } from '../../api/session.tsx'

/** The gateways that the console was told of, and how each is. */
export const useGateways = () =>
  useQuery({
    queryKey: ['gateways'],
    queryFn: ({ signal }) => listGateways(signal),
    enabled: isAllowed(inspecting, useSession().scopes),
  })
