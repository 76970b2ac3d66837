import { useSearchParams } from 'wouter'
import { GatewayPage } from '../../components/gateway-page.tsx'
import { Tabs } from '../../components/page.tsx'
import { OfPerson } from './of-person.tsx'
import { OfRoute } from './of-route.tsx'

const tabs = { person: 'A person', route: 'A route' } as const

/** Who may do what at a gateway, without a request. */
const AccessPage = () => {
  const [search] = useSearchParams()
  const isOfRoute = search.get('tab') === 'route'
  const pathOf = (tab: string) => {
    const query = new URLSearchParams(search)
    query.set('tab', tab)
    return `/access?${query}`
  }
  return (
    <GatewayPage
      title="Access"
      lead="Who may do what, as the rules in force decide it. Nothing is sent to an API."
      keeps={['tab', 'person', 'application', 'show', 'route']}
    >
      {({ name, state }) => (
        <>
          <Tabs
            tabs={Object.entries(tabs).map(([key, title]) => ({ title, path: pathOf(key) }))}
            current={pathOf(isOfRoute ? 'route' : 'person')}
          />
          {state === 'answers' && (isOfRoute ? <OfRoute gateway={name} /> : <OfPerson gateway={name} />)}
        </>
      )}
    </GatewayPage>
  )
}

export default AccessPage
