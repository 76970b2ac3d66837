import type { ReactNode } from 'react'
import { useSearchParams } from 'wouter'
import { type Gateway, useGateways } from '../api/gateways.ts'
import { GatewayNotices, NoGateways } from './gateway-notices.tsx'
import { ProblemNotice } from './notice.tsx'
import { Loading, Page } from './page.tsx'
import { Select } from './select.tsx'

interface GatewayPageProps {
  title: string
  lead: string
  /** Parameters of the address that mean the same at another gateway. Default: none. */
  keeps?: readonly string[]
  children(gateway: Gateway): ReactNode
}

/** A page about one gateway: the one in the address, else the first that answers. Others are chosen above it. */
export const GatewayPage = ({ title, lead, keeps = [], children }: GatewayPageProps) => {
  const { data: known, error } = useGateways()
  const [search, setSearch] = useSearchParams()
  if (error)
    return (
      <Page title={title}>
        <ProblemNotice error={error} />
      </Page>
    )
  if (!known) return <Loading />
  const { gateways } = known
  const gateway =
    gateways.find(({ name }) => name === search.get('gateway')) ??
    gateways.find(({ state }) => state === 'answers') ??
    gateways[0]
  if (!gateway) return <NoGateways title={title} />
  const choose = (name: string) =>
    setSearch((before) => [...[...before].filter(([parameter]) => keeps.includes(parameter)), ['gateway', name]])
  return (
    <Page
      title={title}
      lead={lead}
      actions={
        gateways.length > 1 && (
          <Select
            label="Gateway"
            value={gateway.name}
            options={Object.fromEntries(gateways.map(({ name }) => [name, name]))}
            onChange={choose}
          />
        )
      }
    >
      <GatewayNotices gateways={Object.fromEntries(gateways.map(({ name, ...rest }) => [name, rest]))} />
      {children(gateway)}
    </Page>
  )
}
