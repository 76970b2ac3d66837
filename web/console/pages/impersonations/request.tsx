import { useChange, useRead } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl, EntityId } from '../../components/copy.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Facts, Loading, Page, type PageProps, Section } from '../../components/page.tsx'
import { FullTime, RelativeTime } from '../../components/time.tsx'
import { StateOfRequest } from './state.tsx'
import { SubjectToken } from './subject-token.tsx'

/** One question to a customer: the number to tell them, and what they said. */
const RequestPage = ({ params: { id = '' } }: PageProps) => {
  const { data, error } = useRead('getImpersonationRequest', { params: { id } }, { everyMs: 2_000 })
  const take = useChange('createSubjectToken')
  const input = { body: { requestId: id } }
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { status, number, userId, actorId, creatorId, reason, ticket, ...rest } = data.body
  const taken = take.data && 'subjectToken' in take.data ? take.data : undefined
  return (
    <Page
      title={reason ?? 'Request to act for a user'}
      above={{ title: 'Requests to customers', path: '/impersonations/requests' }}
      lead={<StateOfRequest status={status} />}
      actions={
        !taken && (
          <>
            <CopyAsCurl operation="createSubjectToken" input={input} />
            <Allowed operation="createSubjectToken">
              <Button
                kind="main"
                isDisabled={status !== 'approved'}
                isPending={take.isPending}
                onPress={() => take.mutate(input)}
              >
                Make the subject token
              </Button>
            </Allowed>
          </>
        )
      }
    >
      <ProblemNotice error={take.error} />
      {taken && <SubjectToken token={taken} />}
      {status === 'pending' && (
        <Notice>
          <p>
            Tell the customer the number <strong>{number}</strong>: they see the same one, and answer at their account.
            This page shows the answer as it comes; the request waits until <FullTime at={rest.expiresAt} />.
          </p>
        </Notice>
      )}
      <Section title="What was asked">
        <Facts
          facts={{
            Number: number,
            'Who is asked': <EntityId id={userId} />,
            'Who is to act': actorId && <EntityId id={actorId} />,
            'Asked by': <EntityId id={creatorId} />,
            Ticket: ticket,
            API: rest.resource && <code>{rest.resource}</code>,
            Permissions: rest.scopes?.join(' '),
            Asked: <FullTime at={rest.createdAt} />,
            Answered: rest.decidedAt && <FullTime at={rest.decidedAt} />,
            Until: status === 'approved' && <RelativeTime at={rest.expiresAt} />,
            'Only looking': rest.readOnly ? 'yes' : undefined,
            'No longer than': rest.maxTtl && `${Math.round(rest.maxTtl / 60)} minutes`,
          }}
        />
      </Section>
    </Page>
  )
}

export default RequestPage
