import { useSearchParams } from 'wouter'
import { useGateways } from '../../api/gateways.ts'
import { GatewayNotices, NoGateways } from '../../components/gateway-notices.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page, type PageProps, Tabs } from '../../components/page.tsx'
import { Select } from '../../components/select.tsx'
import { Issuers } from './issuers.tsx'
import { Limits } from './limits.tsx'
import { Routes } from './routes.tsx'
import { Upstreams } from './upstreams.tsx'

const parts = {
  routes: { title: 'Routes', Part: Routes },
  upstreams: { title: 'Upstreams', Part: Upstreams },
  issuers: { title: 'Issuers and keys', Part: Issuers },
  limits: { title: 'Limits', Part: Limits },
} as const

const isPart = (name: string): name is keyof typeof parts => Object.hasOwn(parts, name)

/** A gateway as it runs: nothing here changes it, its file does. */
const GatewayPage = ({ params: { tab = 'routes' } }: PageProps) => {
  const { data: known, error } = useGateways()
  const [search, setSearch] = useSearchParams()
  if (error) return <ProblemNotice error={error} />
  if (!known) return <Loading />
  const { gateways } = known
  if (gateways.length === 0) return <NoGateways title="Gateway" />
  const part = isPart(tab) ? tab : 'routes'
  const gateway =
    gateways.find(({ name }) => name === search.get('gateway')) ??
    gateways.find(({ state }) => state === 'answers') ??
    gateways[0]!
  const { Part } = parts[part]
  const chosen = search.has('gateway') ? `?gateway=${gateway.name}` : ''
  const pathOf = (name: string) => `/gateway${name === 'routes' ? '' : `/${name}`}${chosen}`
  return (
    <Page
      title="Gateway"
      lead="As it runs. Its file is what changes it."
      actions={
        gateways.length > 1 && (
          <Select
            label="Gateway"
            value={gateway.name}
            options={Object.fromEntries(gateways.map(({ name }) => [name, name]))}
            onChange={(name) => setSearch({ gateway: name })}
          />
        )
      }
    >
      <GatewayNotices gateways={Object.fromEntries(gateways.map(({ name, ...rest }) => [name, rest]))} />
      <Tabs
        tabs={Object.entries(parts).map(([name, { title }]) => ({ title, path: pathOf(name) }))}
        current={pathOf(part)}
      />
      {gateway.state === 'answers' && <Part key={gateway.name} gateway={gateway.name} />}
    </Page>
  )
}

export default GatewayPage
