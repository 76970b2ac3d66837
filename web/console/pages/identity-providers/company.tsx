import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityForm } from '../../components/entity-form.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page } from '../../components/page.tsx'
import { configFields, withoutMasks, withStoredSecrets } from '../connectors/config-fields.ts'
import { companyFields } from './provider-fields.ts'
import { RedirectUri } from './social.tsx'

const Company = ({ params: { id = '' } }: { params: { id?: string } }) => {
  const [, navigate] = useLocation()
  const { data, error } = useRead('getSsoConnector', { params: { id } })
  const kinds = useRead('listSsoConnectorProviders').data?.body
  if (error) return <ProblemNotice error={error} />
  if (!data || !kinds) return <Loading />
  const { body: connector, etag } = data
  const schema = kinds.find(({ providerName }) => providerName === connector.providerName)?.configSchema ?? {}
  const isConfigured = Object.keys(connector.config).length > 0
  return (
    <Page
      title={connector.connectorName}
      lead={connector.name}
      above={{ title: 'Identity providers', path: '/identity-providers' }}
      actions={
        <ConfirmDeletion
          {...{ kind: 'company', name: connector.connectorName, operation: 'deleteSsoConnector', params: { id } }}
          onDone={() => navigate('/identity-providers')}
        />
      }
    >
      <RedirectUri id={id} />
      <EntityForm
        {...{ name: 'company', operation: 'updateSsoConnector', params: { id }, etag }}
        record={withoutMasks(connector)}
        groups={{ Company: companyFields, Configuration: configFields(schema, !isConfigured) }}
        bodyOf={({ config, ...body }) => ({
          ...body,
          ...(config !== undefined && { config: withStoredSecrets(Object(config), connector.config) }),
        })}
      />
    </Page>
  )
}

export default Company
