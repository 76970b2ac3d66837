import { useSearchParams } from 'wouter'
import { useGateway } from '../../api/gateways.ts'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Facts, Loading, Section } from '../../components/page.tsx'
import { Select } from '../../components/select.tsx'
import { RolesWithScope } from '../why/roles-with-scope.tsx'
import style from './access.module.css'

/** A route: what a token needs for it, and the roles that give it. */
export const OfRoute = ({ gateway }: { gateway: string }) => {
  const { data, error } = useGateway(gateway, 'routes')
  const [search, setSearch] = useSearchParams()
  const wanted = search.get('route') ?? undefined
  // It may stand on another page of them.
  const isElsewhere = wanted !== undefined && data?.cursor !== undefined && !data.routes.some(({ id }) => id === wanted)
  const { data: elsewhere } = useGateway(gateway, 'routes', { query: { route: wanted } }, { when: isElsewhere })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const routes = isElsewhere ? [...(elsewhere?.routes ?? []), ...data.routes] : data.routes
  const route = routes.find(({ id }) => id === wanted) ?? routes[0]
  if (!route) return <Notice>The gateway has no routes.</Notice>
  const { auth, scopes, audience, issuers, methods, path, impersonation, entrypoint } = route
  return (
    <Section
      title="Who may"
      lead="By the permissions that the route asks for. What rules say beyond them depends on the request: ask for a person."
    >
      <div>
        <Select
          label="Route"
          value={route.id}
          options={Object.fromEntries(routes.map(({ id }) => [id, id]))}
          onChange={(id) =>
            setSearch((before) => {
              const next = new URLSearchParams(before)
              next.set('route', id)
              return next
            })
          }
        />
      </div>
      <Facts
        facts={{
          Requests: (
            <>
              {methods.join(', ') || 'Every method'} <code>{path}</code>
            </>
          ),
          Audience: audience.join(', ') || undefined,
          Issuers: issuers.join(', ') || undefined,
          'Acting for somebody': impersonation,
          Policy: <code>{entrypoint}</code>,
        }}
      />
      {auth === 'none' ? (
        <Notice kind="warn">Everybody: it asks for no token.</Notice>
      ) : scopes.length === 0 ? (
        <Notice>Everybody with a token for {audience.join(' or ')}: it asks for no permission.</Notice>
      ) : (
        <ul className={style.scopes} aria-label="Permissions that are needed">
          {scopes.map((scope) => (
            <li key={scope}>
              <Badge>{scope}</Badge> <RolesWithScope scope={scope} audience={audience} />
            </li>
          ))}
        </ul>
      )}
      {scopes.length > 1 && <p>All of these are needed together.</p>}
    </Section>
  )
}
