import type { Problem } from '../../api/problem.ts'
import { Notice } from '../../components/notice.tsx'
import { Page } from '../../components/page.tsx'
import { RequestField } from './request-field.tsx'

/** No gateway that answers has the request: it may be old, mistyped, or kept by one that is away. */
export const NotFound = ({ request, problem }: { request: string; problem: Problem }) => {
  const missing = Array.isArray(problem.data['missing']) ? (problem.data['missing'] as Missing[]) : []
  return (
    <Page title="No gateway has this request" above={{ title: 'Live', path: '/live' }}>
      <Notice kind="warn">
        <p>
          Gateways keep the last decisions only, as many as <code>inspection.keep</code> has room for; older ones stand
          in the decision log.
        </p>
        {missing.map(({ gateway, because }) => (
          <p key={gateway}>
            <strong>{gateway} did not answer</strong>: {because}. It may have it.
          </p>
        ))}
      </Notice>
      <RequestField request={request} />
    </Page>
  )
}

interface Missing {
  gateway: string
  because: string
}
