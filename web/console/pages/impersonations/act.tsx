import { useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import { CreateForm } from '../../components/create-form.tsx'
import type { Field } from '../../components/field.ts'
import { Page, Section } from '../../components/page.tsx'
import { SubjectToken } from './subject-token.tsx'

const fields: readonly Field[] = [
  { path: 'userId', label: 'For whom', isRequired: true, isCode: true, hint: 'The id of a user: Users has them.' },
  { path: 'reason', label: 'Reason', isRequired: true, hint: 'The customer may read it.' },
  { path: 'ticket', label: 'Ticket', hint: 'Where the reason is written down.' },
  {
    ...{ path: 'clientId', label: 'Only for this application', isCode: true },
    hint: 'Its id. Empty: any application that may exchange tokens.',
  },
  { path: 'resource', label: 'Only for this API', isCode: true, hint: 'Its indicator. Empty: any.' },
  {
    path: 'scopes',
    label: 'Only these permissions',
    kind: 'list',
    isCode: true,
    hint: 'Empty: all that the user has.',
  },
  {
    ...{ path: 'actorId', label: 'Only for this person', isCode: true },
    hint: 'The id of who acts: they prove it by a token of their own. Empty: the application acts.',
  },
]

/** A subject token, or the question to the customer. */
const Act = () => {
  const [, navigate] = useLocation()
  const [search] = useSearchParams()
  const [token, setToken] = useState<{ subjectToken: string; expiresIn: number }>()
  return (
    <Page
      title="Act for a user"
      above={{ title: 'Impersonation', path: '/impersonations' }}
      lead="Makes a subject token: an application exchanges it, once, for an access token that stands for the user. Rules decide whether that may be, now and at the exchange."
    >
      {token ? (
        <SubjectToken token={token} />
      ) : (
        <Section title="For whom, and why">
          <CreateForm
            name="act for a user"
            operation="createSubjectToken"
            initial={{ userId: search.get('user') ?? '' }}
            fields={fields}
            label="Make a subject token"
            onDone={(answer) => {
              if ('subjectToken' in answer) setToken(answer)
              else navigate(`/impersonations/requests/${answer.requestId}`)
            }}
          />
        </Section>
      )}
    </Page>
  )
}

export default Act
