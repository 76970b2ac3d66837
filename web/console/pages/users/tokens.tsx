import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import type { Field } from '../../components/field.ts'
import { NewSecret } from '../../components/new-secret.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import { Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { RelativeTime } from '../../components/time.tsx'

const fields: readonly Field[] = [
  { path: 'name', label: 'Name', isRequired: true, hint: 'Where it is used.' },
  { path: 'scopes', label: 'Permissions', kind: 'list', isCode: true, hint: 'None: everything that they may.' },
  {
    path: 'days',
    label: 'Ends',
    kind: 'choice',
    options: { 7: '7 days', 30: '30 days', 90: '90 days', 365: 'A year', '': 'Never' },
  },
]

const dayMs = 86_400_000

/** As the API takes it: a time instead of a number of days. */
const bodyOf = ({ days, scopes, ...body }: Record<string, unknown>) => ({
  ...body,
  scopes: Array.isArray(scopes) && scopes.length > 0 ? scopes : null,
  expiresAt: days === undefined ? null : Date.now() + Number(days) * dayMs,
})

/** Personal access tokens: what scripts of a person use in their name. */
export const Tokens = ({ userId }: { userId: string }) => {
  const { data, error } = useRead('listPersonalAccessTokens', { params: { userId } })
  return (
    <Section
      title="Personal access tokens"
      lead="What scripts of this person use in their name. Each is shown once."
      actions={
        <NewSecret
          {...{ kind: 'token', label: 'personal access token', operation: 'createPersonalAccessToken' }}
          params={{ userId }}
          fields={fields}
          initial={{ days: '90' }}
          bodyOf={bodyOf}
        />
      }
    >
      <ProblemNotice error={error} />
      {!data && !error && <Loading lines={2} />}
      {data && (
        <Rows
          title="Personal access tokens"
          empty="They have none."
          rows={data.body.map(({ name, scopes, createdAt, expiresAt, lastUsedAt }) => ({
            key: name,
            title: name,
            facts: (
              <>
                {scopes ? scopes.join(' ') : 'everything that they may'} · made <RelativeTime at={createdAt} /> · used{' '}
                <RelativeTime at={lastUsedAt} /> · ends <RelativeTime at={expiresAt} />
              </>
            ),
            actions: (
              <ConfirmDeletion
                {...{ kind: 'token', name, operation: 'deletePersonalAccessTokenByPath' }}
                params={{ userId, name }}
                onDone={() => announce('The token is gone.')}
              />
            ),
          }))}
        />
      )}
    </Section>
  )
}
