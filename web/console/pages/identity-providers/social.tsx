import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { useSession } from '../../api/session.tsx'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { CopyableText } from '../../components/copy.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page, Section } from '../../components/page.tsx'
import { ConnectorForm } from '../connectors/connector-form.tsx'
import { useFactories } from '../connectors/kinds.ts'
import { socialFields } from './provider-fields.ts'

const Social = ({ params: { id = '' } }: { params: { id?: string } }) => {
  const [, navigate] = useLocation()
  const { data, error } = useRead('getConnector', { params: { id } })
  const factory = useFactories(['Social'])?.find((one) => one.id === data?.body.connectorId)
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { name, target, description } = data.body
  return (
    <Page
      title={name}
      lead={description}
      above={{ title: 'Identity providers', path: '/identity-providers' }}
      actions={
        <ConfirmDeletion
          {...{ kind: 'identity provider', name: target, operation: 'deleteConnector', params: { id } }}
          onDone={() => navigate('/identity-providers')}
        />
      }
    >
      <RedirectUri id={id} />
      {factory && (
        <ConnectorForm
          {...{ connector: data.body, factory, etag: data.etag }}
          further={socialFields(factory.id === 'oidc', false)}
        />
      )}
    </Page>
  )
}

/** What the provider has to know of us. */
export const RedirectUri = ({ id }: { id: string }) => {
  const { baseUrl } = useSession()
  return (
    <Section title="At the provider" lead="Register this as the redirect URI.">
      <CopyableText label="redirect URI" text={`${baseUrl}/callback/${id}`} />
    </Section>
  )
}

export default Social
