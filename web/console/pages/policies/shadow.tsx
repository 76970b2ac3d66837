import { Link } from 'wouter'
import { useGateway } from '../../api/gateways.ts'
import { CopyableText } from '../../components/copy.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { CopyInspectionCurl } from '../gateway/inspection-curl.tsx'

/** Where the shadow policies decide differently from those in force. */
export const Shadow = ({ gateway }: { gateway: string }) => {
  const { data, error } = useGateway(gateway, 'shadow')
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  if (!data.configured)
    return (
      <Section
        title="Shadow"
        lead="Rules that are asked beside those in force and never enforced: the step before a change. This gateway has none."
      >
        <CopyableText label="gateway.yaml" text={'policies:\n  path: policies\n  shadow: policies-next'} />
      </Section>
    )
  return (
    <Section
      title="Shadow"
      lead="The last requests about which the shadow policies decide differently."
      actions={<CopyInspectionCurl name="shadow" />}
    >
      <Rows
        title="Differences"
        empty="They have decided alike so far."
        rows={data.differences.slice(0, 100).map(({ requestId, route, differs, live, shadow, timestamp }) => ({
          key: requestId,
          title: <Link href={`/why/${encodeURIComponent(requestId)}`}>{route}</Link>,
          facts: (
            <>
              <time dateTime={timestamp}>{new Date(timestamp).toLocaleTimeString()}</time> · {differs.join(', ')} ·{' '}
              <Badge kind={live.allow ? 'good' : 'bad'}>{live.allow ? 'allowed' : (live.reason ?? 'denied')}</Badge> →{' '}
              <Badge kind={shadow.allow ? 'good' : 'bad'}>
                {shadow.allow ? 'allowed' : (shadow.reason ?? 'denied')}
              </Badge>
            </>
          ),
        }))}
      />
    </Section>
  )
}
