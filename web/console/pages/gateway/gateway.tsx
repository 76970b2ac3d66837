import { useSearchParams } from 'wouter'
import { GatewayPage } from '../../components/gateway-page.tsx'
import { type PageProps, Tabs } from '../../components/page.tsx'
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
const AsItRuns = ({ params: { tab = 'routes' } }: PageProps) => {
  const [search] = useSearchParams()
  const part = isPart(tab) ? tab : 'routes'
  const { Part } = parts[part]
  const chosen = search.get('gateway')
  const query = chosen === null ? '' : `?${new URLSearchParams({ gateway: chosen })}`
  const pathOf = (name: string) => `/gateway${name === 'routes' ? '' : `/${name}`}${query}`
  return (
    <GatewayPage title="Gateway" lead="As it runs. Its file is what changes it.">
      {({ name, state }) => (
        <>
          <Tabs
            tabs={Object.entries(parts).map(([key, { title }]) => ({ title, path: pathOf(key) }))}
            current={pathOf(part)}
          />
          {state === 'answers' && <Part key={name} gateway={name} />}
        </>
      )}
    </GatewayPage>
  )
}

export default AsItRuns
