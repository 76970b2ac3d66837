import { useCallLog } from '../../api/call-log.ts'
import { curlOfRequest } from '../../api/curl.ts'
import { useSession } from '../../api/session.tsx'
import { CopyButton } from '../../components/copy.tsx'
import { Badge, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { RelativeTime } from '../../components/time.tsx'

/** What this tab has asked the Management API, to be asked again from a shell. */
export const ApiLog = () => {
  const { baseUrl } = useSession()
  const calls = useCallLog()
  return (
    <Section
      title="Calls of this tab"
      lead="The latest 200 since it was loaded. Bodies are not kept, because they may be secret: put yours into body.json."
    >
      <Rows
        title="Calls of this tab"
        empty="None yet. Open another page: what it asks the API stands here afterwards."
        rows={calls.map(({ id, method, path, status, ms, requestId, at }, index) => ({
          key: `${calls.length - index}`,
          title: (
            <code>
              {method} /api{path}
            </code>
          ),
          facts: (
            <>
              <Badge kind={status < 400 ? 'good' : 'bad'}>{status}</Badge> {id} · {ms} ms · <RelativeTime at={at} />
              {requestId && (
                <>
                  {' '}
                  · request <code>{requestId}</code>
                </>
              )}
            </>
          ),
          actions: (
            <CopyButton
              label={`Copy as curl: ${id}`}
              text={curlOfRequest({
                ...{ method, url: `${baseUrl}/api${path}` },
                body: ['GET', 'DELETE'].includes(method) ? undefined : '@body.json',
              })}
            >
              curl
            </CopyButton>
          ),
        }))}
      />
    </Section>
  )
}
