import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import { Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { RelativeTime } from '../../components/time.tsx'

/** Personal access tokens: what scripts of a person use in their name. */
export const Tokens = ({ userId }: { userId: string }) => {
  const { data, error } = useRead('listPersonalAccessTokens', { params: { userId } })
  return (
    <Section title="Personal access tokens" lead="What scripts of this person use in their name. Each is shown once.">
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
