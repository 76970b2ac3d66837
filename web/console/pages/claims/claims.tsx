import { isProblem } from '../../api/problem.ts'
import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityForm } from '../../components/entity-form.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page, Tabs } from '../../components/page.tsx'
import { Begin } from './begin.tsx'
import { fieldsOf } from './claims-fields.ts'
import { kinds, type TokenType } from './kinds.ts'
import { Trial } from './trial.tsx'

const path = '/claims'
const tabs = Object.entries(kinds).map(([kind, { title }]) => ({ title, path: `${path}/${kind}` }))

/** The script that adds claims to tokens of a kind, and what it does to those of real people. */
const ClaimsPage = ({ params: { kind = 'access-token' } }: { params: { kind?: string } }) => {
  const tokenType: TokenType = kind === 'client-credentials' ? kind : 'access-token'
  const { data, error } = useRead('getClaimsScript', { params: { tokenType } })
  const isNone = isProblem(error) && error.status === 404
  return (
    <Page
      title="Custom claims"
      lead="A script adds claims to access tokens that are about to be signed, or denies them. It counts from the next token on."
      actions={
        data &&
        !error && (
          <ConfirmDeletion
            kind="script"
            name={tokenType}
            operation="deleteClaimsScript"
            params={{ tokenType }}
            onDone={() => {}}
          >
            Tokens are issued without its claims from then on, and nobody is denied one by it.
          </ConfirmDeletion>
        )
      }
    >
      <Tabs tabs={tabs} current={`${path}/${tokenType}`} />
      {isNone ? <Begin tokenType={tokenType} /> : <ProblemNotice error={error} />}
      {!data && !error && <Loading />}
      {data && !error && (
        <EntityForm
          key={tokenType}
          {...{ name: tokenType, operation: 'updateClaimsScript', params: { tokenType } }}
          {...{ record: data.body, etag: data.etag, groups: fieldsOf(tokenType) }}
        >
          {(values) => (
            <Trial
              tokenType={tokenType}
              script={String(values['script'])}
              environmentVariables={(values['environmentVariables'] ?? {}) as Record<string, string>}
            />
          )}
        </EntityForm>
      )}
    </Page>
  )
}

export default ClaimsPage
