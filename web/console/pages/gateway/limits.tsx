import { Link } from 'wouter'
import { useGateway } from '../../api/gateways.ts'
import { CopyableText } from '../../components/copy.tsx'
import { CopyInspectionCurl } from '../../components/inspection-curl.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Facts, Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'

/** Of all requests, and of single routes; and the whole file that they are from, as it runs. */
export const Limits = ({ gateway }: { gateway: string }) => {
  const { data, error } = useGateway(gateway, 'configuration')
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { file, revision, configuration } = data
  const { limits, routes } = configuration as { limits?: Record<string, unknown>; routes?: readonly LimitedRoute[] }
  const limited = (routes ?? []).filter(({ rateLimit }) => rateLimit && [rateLimit].flat().length > 0)
  return (
    <>
      <Section title="Of all requests" lead="Sizes in bytes, times in milliseconds.">
        <Facts
          facts={Object.fromEntries(
            Object.entries(Object(limits)).map(([name, value]) => [
              name,
              typeof value === 'number' ? value.toLocaleString('en') : String(value),
            ]),
          )}
        />
      </Section>
      <Section title="Of routes" lead="So many requests in a time, counted for each subject, client, actor or address.">
        <Rows
          title="Limits of routes"
          empty="No route has one."
          rows={limited.map(({ id, rateLimit }) => ({
            key: id,
            title: <Link href={`/gateway?gateway=${gateway}&route=${id}`}>{id}</Link>,
            facts: [rateLimit!]
              .flat()
              .map(
                ({ by, requests, per, burst }) => `${requests} in ${Number(per) / 1_000} s by ${by}, ${burst} at once`,
              )
              .join(' · '),
          }))}
        />
      </Section>
      <Section
        title="The file"
        lead={
          <>
            With all defaults; secrets are left out. Revision <code>{revision}</code>
            {file && (
              <>
                {' '}
                of <code>{file}</code>
              </>
            )}
          </>
        }
        actions={<CopyInspectionCurl name="configuration" />}
      >
        <CopyableText label="configuration" text={JSON.stringify(configuration, null, 2)} />
      </Section>
    </>
  )
}

interface LimitedRoute {
  id: string
  rateLimit?: RateLimit | readonly RateLimit[]
}

interface RateLimit {
  by: string
  requests: number
  per: unknown
  burst: number
}
