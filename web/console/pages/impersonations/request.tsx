import { useChange, useRead } from '../../api/queries.ts'
import { useRefusal } from '../../api/session.tsx'
import { Button, RefusalContext } from '../../components/button.tsx'
import { CopyAsCurl, EntityId } from '../../components/copy.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Facts, Loading, Page, type PageProps, Section } from '../../components/page.tsx'
import { FullTime, RelativeTime } from '../../components/time.tsx'
import { type Request, StateOfRequest } from './state.tsx'
import { SubjectToken } from './subject-token.tsx'

/** One question to a customer: the number to tell them, and what they said. */
const RequestPage = ({ params: { id = '' } }: PageProps) => {
  const { data, error } = useRead('getImpersonationRequest', { params: { id } }, { everyMs: 2_000 })
  const take = useChange('createSubjectToken')
  const refusal = useRefusal('createSubjectToken')
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
            <RefusalContext value={refusal ?? whyNot(data.body)}>
              <Button kind="main" isPending={take.isPending} onPress={() => take.mutate(input)}>
                Make the subject token
              </Button>
            </RefusalContext>
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
            Until: status === 'approved' ? <RelativeTime at={rest.expiresAt} /> : undefined,
            'Only looking': rest.readOnly ? 'yes' : undefined,
            'No longer than': rest.maxTtl && `${Math.round(rest.maxTtl / 60)} minutes`,
          }}
        />
      </Section>
    </Page>
  )
}

const consoleClientId = 'surrogate-console'

/** Why no token can be made of it here, now. */
const whyNot = ({ status, creatorId }: Request): string | undefined => {
  if (creatorId !== consoleClientId) return 'Only the application that asked gets the token.'
  return {
    pending: 'The customer has not answered yet.',
    approved: undefined,
    refused: 'The customer does not want it.',
    expired: 'It has expired. Ask again.',
    used: 'The token was made already.',
  }[status]
}

export default RequestPage
