import { useSearchParams } from 'wouter'
import { useGateway, useGateways } from '../../api/gateways.ts'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page, Tabs } from '../../components/page.tsx'
import { Select } from '../../components/select.tsx'
import { GatewayNotices, NoGateways } from '../gateway/gateway-notices.tsx'
import { Files } from './files.tsx'
import { Playground } from './playground.tsx'
import { Shadow } from './shadow.tsx'

const tabs = { files: 'Files', playground: 'Playground', shadow: 'Shadow' } as const

/** The rules of a gateway: read, tried beside those in force, and changed by a patch or where saving is allowed. */
const PoliciesPage = () => {
  const { data: known, error } = useGateways()
  const [search, setSearch] = useSearchParams()
  if (error)
    return (
      <Page title="Policies">
        <ProblemNotice error={error} />
      </Page>
    )
  if (!known) return <Loading />
  const { gateways } = known
  if (gateways.length === 0) return <NoGateways title="Policies" />
  const gateway =
    gateways.find(({ name }) => name === search.get('gateway')) ??
    gateways.find(({ state }) => state === 'answers') ??
    gateways[0]!
  const wanted = search.get('tab') ?? 'files'
  const tab = Object.hasOwn(tabs, wanted) ? (wanted as keyof typeof tabs) : 'files'
  const pathOf = (name: string) => {
    const query = new URLSearchParams(search)
    query.set('tab', name)
    return `/policies?${query}`
  }
  return (
    <Page
      title="Policies"
      lead="What gateways ask whether a request may pass. What you write is tried on the real engine beside the rules in force."
      actions={
        gateways.length > 1 && (
          <Select
            label="Gateway"
            value={gateway.name}
            options={Object.fromEntries(gateways.map(({ name }) => [name, name]))}
            onChange={(name) => setSearch({ tab, gateway: name })}
          />
        )
      }
    >
      <GatewayNotices gateways={Object.fromEntries(gateways.map(({ name, ...rest }) => [name, rest]))} />
      <Tabs tabs={Object.entries(tabs).map(([name, title]) => ({ title, path: pathOf(name) }))} current={pathOf(tab)} />
      {gateway.state === 'answers' && <Parts key={gateway.name} gateway={gateway.name} tab={tab} />}
    </Page>
  )
}

const Parts = ({ gateway, tab }: { gateway: string; tab: keyof typeof tabs }) => {
  const { data: policies, error } = useGateway(gateway, 'policies')
  if (error) return <ProblemNotice error={error} />
  if (!policies) return <Loading />
  if (tab === 'shadow') return <Shadow gateway={gateway} />
  if (tab === 'playground') return <Playground gateway={gateway} policies={policies} />
  return <Files gateway={gateway} policies={policies} />
}

export default PoliciesPage
