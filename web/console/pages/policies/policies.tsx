import { useSearchParams } from 'wouter'
import { useGateway } from '../../api/gateways.ts'
import { GatewayPage } from '../../components/gateway-page.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Tabs } from '../../components/page.tsx'
import { Files } from './files.tsx'
import { Playground } from './playground.tsx'
import { Shadow } from './shadow.tsx'

const tabs = { files: 'Files', playground: 'Playground', shadow: 'Shadow' } as const

/** The rules of a gateway: read, tried beside those in force, and changed by a patch or where saving is allowed. */
const PoliciesPage = () => {
  const [search] = useSearchParams()
  const wanted = search.get('tab') ?? 'files'
  const tab = Object.hasOwn(tabs, wanted) ? (wanted as keyof typeof tabs) : 'files'
  const pathOf = (name: string) => {
    const query = new URLSearchParams(search)
    query.set('tab', name)
    return `/policies?${query}`
  }
  return (
    <GatewayPage
      title="Policies"
      lead="What gateways ask whether a request may pass. What you write is tried on the real engine beside the rules in force."
      keeps={['tab']}
    >
      {({ name: gateway, state }) => (
        <>
          <Tabs
            tabs={Object.entries(tabs).map(([name, title]) => ({ title, path: pathOf(name) }))}
            current={pathOf(tab)}
          />
          {state === 'answers' && <Parts key={gateway} gateway={gateway} tab={tab} />}
        </>
      )}
    </GatewayPage>
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
