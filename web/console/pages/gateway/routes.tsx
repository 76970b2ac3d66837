import { Link, useSearchParams } from 'wouter'
import { useGateway } from '../../api/gateways.ts'
import { Button } from '../../components/button.tsx'
import { FilterBar } from '../../components/filters.tsx'
import { CopyInspectionCurl } from '../../components/inspection-curl.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Facts, Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { Match } from './match.tsx'

/** How many are listed at once. */
const shown = '50'

/** In the order in which a request tries them. */
export const Routes = ({ gateway }: { gateway: string }) => {
  const [search, setSearch] = useSearchParams()
  const id = search.get('route') ?? undefined
  const asked = id
    ? { route: id }
    : { search: search.get('search') ?? undefined, cursor: search.get('cursor') ?? undefined }
  const { data, error } = useGateway(gateway, 'routes', { query: { limit: shown, ...asked } })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { routes, total, cursor: next } = data
  const move = (cursor: string | undefined) =>
    setSearch((before) => {
      const after = new URLSearchParams(before)
      if (cursor === undefined) after.delete('cursor')
      else after.set('cursor', cursor)
      return after
    })
  return (
    <>
      <Match gateway={gateway} />
      <Section
        title={id ? `The route ${id}` : 'Routes'}
        lead="The more exact one is before the others: a request goes to the first that takes it."
        actions={<CopyInspectionCurl name="routes" />}
      >
        {id ? (
          <p>
            <Link href={`/gateway?gateway=${gateway}`}>All routes</Link>
          </p>
        ) : (
          <FilterBar
            filters={[{ kind: 'search', name: 'search', label: 'Name, path, method or host' }]}
            search={search}
            onChange={setSearch}
          />
        )}
        <Rows
          title="Routes"
          empty="There is no such route."
          rows={routes.map((route) => ({
            key: route.id,
            title: id ? route.id : <Link href={`/gateway?gateway=${gateway}&route=${route.id}`}>{route.id}</Link>,
            facts: <RouteFacts route={route} isWhole={id !== undefined} />,
            actions: <Link href={`/live?route=${route.id}`}>Its requests</Link>,
          }))}
        />
        {(asked.cursor || next) && (
          <p>
            <Button isDisabled={!asked.cursor} onPress={() => move(undefined)}>
              From the beginning
            </Button>{' '}
            <Button isDisabled={!next} onPress={() => move(next)}>
              Further routes
            </Button>{' '}
            {routes.length} of {total.toLocaleString('en')}
          </p>
        )}
      </Section>
    </>
  )
}

type Route = NonNullable<ReturnType<typeof useGateway<'routes'>>['data']>['routes'][number]

const RouteFacts = ({ route, isWhole }: { route: Route; isWhole: boolean }) => {
  const { hosts, path, methods, upstream, auth, issuers, audience, scopes, entrypoint, impersonation } = route
  const taken = (
    <code>
      {methods.join(', ') || 'any method'} {hosts.join(', ')}
      {path}
    </code>
  )
  if (!isWhole)
    return (
      <>
        {taken} · {auth === 'none' ? <Badge kind="warn">public</Badge> : scopes.join(' ') || 'no scope'}
        {upstream && ` · to ${upstream}`}
      </>
    )
  return (
    <Facts
      facts={{
        Takes: taken,
        Upstream: upstream ?? 'none: for forward-auth only',
        Token: auth === 'none' ? 'none is asked for' : 'required',
        Scopes: scopes.length > 0 ? scopes.join(' ') : undefined,
        Audience: audience.length > 0 ? audience.join(', ') : undefined,
        Issuers: issuers.length > 0 ? issuers.join(', ') : undefined,
        'Acting for somebody': impersonation,
        Policy: <code>{entrypoint}</code>,
      }}
    />
  )
}
