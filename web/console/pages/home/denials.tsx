import { Link } from 'wouter'
import { useDecisions, useGateways } from '../../api/gateways.ts'
import { inspecting } from '../../api/inspecting.ts'
import { isAllowed } from '../../api/operations.ts'
import { useSession } from '../../api/session.tsx'
import { GatewayNotices } from '../../components/gateway-notices.tsx'
import { Section } from '../../components/page.tsx'
import { DecisionList } from '../live/decision-list.tsx'
import { rowOf } from '../live/decision-row.ts'

const query = { verdict: 'denied', limit: 5 } as const

/** What gateways have refused lately, for those who may look into them. */
export const Denials = () => (isAllowed(inspecting, useSession().scopes) ? <LastDenials /> : null)

const LastDenials = () => {
  const { data: known } = useGateways()
  const gateways = known?.gateways ?? []
  const { data } = useDecisions(query, { when: gateways.length > 0 })
  if (!data) return null
  return (
    <>
      <GatewayNotices gateways={Object.fromEntries(gateways.map(({ name, ...rest }) => [name, rest]))} />
      {data.decisions.length > 0 && (
        <Section title="Denied lately" actions={<Link href="/live?verdict=denied">All, as they come</Link>}>
          <DecisionList rows={data.decisions.map(rowOf)} areMany={gateways.length > 1} />
        </Section>
      )}
    </>
  )
}
