import { EntityForm } from '../../components/entity-form.tsx'
import type { Field } from '../../components/field.ts'
import { configFields, withoutMasks, withStoredSecrets } from './config-fields.ts'
import type { Connector, Factory } from './kinds.ts'

interface ConnectorFormProps {
  connector: Connector
  factory: Factory
  etag: string | undefined
  further?: readonly Field[]
}

/** What is meant where nothing is said. */
const withDefaults = (row: Connector): Connector =>
  row.connectorId === 'simple-mail-transfer-protocol' ? { ...row, config: { requireTLS: true, ...row.config } } : row

/** Changes a connector; its secrets stay unless new ones are typed. */
export const ConnectorForm = ({ connector, factory, etag, further = [] }: ConnectorFormProps) => (
  <EntityForm
    {...{ name: 'configuration', operation: 'updateConnector', params: { id: connector.id }, etag }}
    record={withDefaults(withoutMasks(connector))}
    groups={{
      ...(further.length > 0 && { 'On the sign-in page': further }),
      Configuration: configFields(factory.configSchema, false),
    }}
    bodyOf={({ config, ...body }) => ({
      ...body,
      ...(config !== undefined && { config: withStoredSecrets(Object(config), connector.config) }),
    })}
  />
)
