import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { call } from '../../api/call.ts'
import { isAllowed } from '../../api/operations.ts'
import { useSession } from '../../api/session.tsx'
import { isolated } from '../../components/isolated.tsx'
import style from './why.module.css'

/** At most so many roles are named for a scope. */
const shown = 8

/** Who could have given a scope to the token: the roles that carry it on one of the resources it is for. */
export const RolesWithScope = ({ scope, audience }: { scope: string; audience: readonly string[] }) => {
  const { scopes } = useSession()
  const { data } = useQuery({
    queryKey: ['roles with scope', scope, audience],
    queryFn: ({ signal }) => rolesWith(scope, audience, signal),
    enabled: isAllowed('listRoles', scopes),
  })
  if (!data) return null
  if (data.length === 0)
    return (
      <span className={style.roles}>
        No role carries {scope} on {audience.join(' or ') || 'any resource of the token'}.
      </span>
    )
  return (
    <span className={style.roles}>
      Roles with {scope}:
      {data.map(({ id, name }) => (
        <Link key={id} href={`/roles/${id}`}>
          {isolated(name)}
        </Link>
      ))}
    </span>
  )
}

const rolesWith = async (scope: string, audience: readonly string[], signal: AbortSignal) => {
  const { body: resources } = await call('listResources', {}, { signal })
  const found = await Promise.all(
    resources.filter(({ indicator }) => audience.includes(indicator)).map(({ id }) => scopeOf(id, scope, signal)),
  )
  const lists = await Promise.all(
    found.flatMap((scopeId) =>
      scopeId === undefined ? [] : [call('listRoles', { query: { scopeId, page: 1, page_size: shown } }, { signal })],
    ),
  )
  return lists.flatMap(({ body }) => body)
}

const scopeOf = async (resourceId: string, name: string, signal: AbortSignal): Promise<string | undefined> => {
  const query = { 'search.name': name, 'mode.name': 'exact', isCaseSensitive: 'true' } as const
  const { body } = await call('listScopes', { params: { resourceId }, query }, { signal })
  return body[0]?.id
}
