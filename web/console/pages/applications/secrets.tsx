import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { NewSecret } from '../../components/new-secret.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { RelativeTime } from '../../components/time.tsx'

/** By what an application proves itself; values are shown once, when they are made. */
export const Secrets = ({ applicationId: id }: { applicationId: string }) => {
  const { data, error } = useRead('listApplicationSecrets', { params: { id } })
  return (
    <Section
      title="Secrets"
      lead="Two at a time let you change them without an interruption: make a second one, roll it out, delete the first."
      actions={
        <NewSecret
          {...{ kind: 'secret', label: 'client secret', operation: 'createApplicationSecret', params: { id } }}
          fields={[{ path: 'name', label: 'Name', isRequired: true, hint: 'Where it is used, or since when.' }]}
        />
      }
    >
      <ProblemNotice error={error} />
      {data ? (
        <Rows
          title="Secrets"
          empty="It has no secret: nothing can authenticate as this application."
          rows={data.body.map(({ name, createdAt, expiresAt }) => ({
            key: name,
            title: name,
            facts: (
              <>
                made <RelativeTime at={createdAt} /> ·{' '}
                {expiresAt !== null && expiresAt < Date.now() ? (
                  <Badge kind="bad">expired</Badge>
                ) : (
                  <>
                    expires <RelativeTime at={expiresAt} />
                  </>
                )}
              </>
            ),
            actions: (
              <ConfirmDeletion
                kind="secret"
                name={name}
                operation="deleteApplicationSecret"
                params={{ id, name }}
                onDone={() => {}}
              />
            ),
          }))}
        />
      ) : (
        !error && <Loading lines={2} />
      )}
    </Section>
  )
}
