import { useSearchParams } from 'wouter'
import { useGateways } from '../../api/gateways.ts'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page, Tabs } from '../../components/page.tsx'
import { Select } from '../../components/select.tsx'
import { GatewayNotices, NoGateways } from '../gateway/gateway-notices.tsx'
import { OfPerson } from './of-person.tsx'
import { OfRoute } from './of-route.tsx'

const tabs = { person: 'A person', route: 'A route' } as const

/** Who may do what at a gateway, without a request. */
const AccessPage = () => {
  const { data: known, error } = useGateways()
  const [search, setSearch] = useSearchParams()
  if (error)
    return (
      <Page title="Access">
        <ProblemNotice error={error} />
      </Page>
    )
  if (!known) return <Loading />
  const { gateways } = known
  if (gateways.length === 0) return <NoGateways title="Access" />
  const gateway =
    gateways.find(({ name }) => name === search.get('gateway')) ??
    gateways.find(({ state }) => state === 'answers') ??
    gateways[0]!
  const isOfRoute = search.get('tab') === 'route'
  const pathOf = (tab: string) => {
    const query = new URLSearchParams(search)
    query.set('tab', tab)
    return `/access?${query}`
  }
  return (
    <Page
      title="Access"
      lead="Who may do what, as the rules in force decide it. Nothing is sent to an API."
      actions={
        gateways.length > 1 && (
          <Select
            label="Gateway"
            value={gateway.name}
            options={Object.fromEntries(gateways.map(({ name }) => [name, name]))}
            onChange={(name) =>
              setSearch((before) => {
                const next = new URLSearchParams(before)
                next.set('gateway', name)
                return next
              })
            }
          />
        )
      }
    >
      <GatewayNotices gateways={Object.fromEntries(gateways.map(({ name, ...rest }) => [name, rest]))} />
      <Tabs
        tabs={Object.entries(tabs).map(([name, title]) => ({ title, path: pathOf(name) }))}
        current={pathOf(isOfRoute ? 'route' : 'person')}
      />
      {gateway.state === 'answers' &&
        (isOfRoute ? <OfRoute gateway={gateway.name} /> : <OfPerson gateway={gateway.name} />)}
    </Page>
  )
}

export default AccessPage
