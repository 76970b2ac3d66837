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
const shown = 50

/** In the order in which a request tries them. */
export const Routes = ({ gateway }: { gateway: string }) => {
  const { data, error } = useGateway(gateway, 'routes')
  const [search, setSearch] = useSearchParams()
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const id = search.get('route')
  const text = (search.get('search') ?? '').toLowerCase()
  const all = data.routes.filter((route) =>
    id ? route.id === id : `${route.id} ${route.methods} ${route.path} ${route.hosts}`.toLowerCase().includes(text),
  )
  const first = Number(search.get('from')) || 0
  const move = (from: number) =>
    setSearch((before) => {
      const next = new URLSearchParams(before)
      next.set('from', String(from))
      return next
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
          rows={all.slice(first, first + shown).map((route) => ({
            key: route.id,
            title: id ? route.id : <Link href={`/gateway?gateway=${gateway}&route=${route.id}`}>{route.id}</Link>,
            facts: <RouteFacts route={route} isWhole={id !== null} />,
            actions: <Link href={`/live?route=${route.id}`}>Its requests</Link>,
          }))}
        />
        {(first > 0 || first + shown < all.length) && (
          <p>
            <Button isDisabled={first === 0} onPress={() => move(Math.max(0, first - shown))}>
              Before
            </Button>{' '}
            {first + 1} to {Math.min(first + shown, all.length)} of {all.length.toLocaleString('en')}{' '}
            <Button isDisabled={first + shown >= all.length} onPress={() => move(first + shown)}>
              After
            </Button>
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
