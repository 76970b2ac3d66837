import { useRead } from '../../api/queries.ts'
import type { Calls } from '../../generated/api.ts'

export type Connector = Calls['getConnector']['answer']
export type SsoConnector = Calls['getSsoConnector']['answer']
export type Factory = Calls['listConnectorFactories']['answer'][number]

/** Kinds of connectors of some types; those that only exist for tests are in no list. */
export const useFactories = (types: readonly Factory['type'][]): readonly Factory[] | undefined =>
  useRead('listConnectorFactories').data?.body.filter(({ type, id }) => types.includes(type) && !id.startsWith('mock-'))
