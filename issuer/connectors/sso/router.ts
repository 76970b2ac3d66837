import { z } from 'zod'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { type SsoDependencies, ssoOperations } from './operations.ts'
import {
  listSsoProviders,
  newSsoConnector,
  ssoConnector,
  ssoConnectorPatch,
  ssoProvider,
  toSsoConnector,
} from './sso-connector.ts'

const params = z.object({ id })

const refusals = [
  'connector.invalid_config',
  'connector.target_not_allowed',
  'connector.provider_unavailable',
  'single_sign_on.duplicate_connector_name',
  'single_sign_on.duplicated_domains',
  'single_sign_on.forbidden_domains',
] as const

/** Enterprise connectors: the people of a domain sign in at their own provider. */
export const ssoConnectorsRoutes = (dependencies: SsoDependencies): Route[] => {
  const connectors = ssoOperations(dependencies)
  return [
    route({
      method: 'GET',
      path: '/sso-connectors',
      operationId: 'listSsoConnectors',
      summary: 'Lists enterprise connectors, oldest first. Their secrets are masked.',
      scope: 'sign-in',
      status: 200,
      response: z.array(ssoConnector),
      handle: async () => ({ body: (await connectors.list()).map(toSsoConnector) }),
    }),
    route({
      method: 'GET',
      path: '/sso-connector-providers',
      operationId: 'listSsoConnectorProviders',
      summary: 'Lists the kinds of enterprise connectors there are, with the JSON Schema of their configuration.',
      scope: 'sign-in',
      status: 200,
      response: z.array(ssoProvider),
      handle: async () => ({ body: listSsoProviders() }),
    }),
    route({
      method: 'POST',
      path: '/sso-connectors',
      operationId: 'createSsoConnector',
      summary: 'Creates an enterprise connector; reads what its provider publishes.',
      scope: 'sign-in',
      body: newSsoConnector,
      status: 200,
      response: ssoConnector,
      problems: refusals,
      handle: async (context) => ({ body: toSsoConnector(await connectors.create(context, context.body)) }),
    }),
    route({
      method: 'GET',
      path: '/sso-connectors/:id',
      operationId: 'getSsoConnector',
      summary: 'Reads an enterprise connector. Its secrets are masked.',
      scope: 'sign-in',
      params,
      status: 200,
      response: ssoConnector,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id } }) => ({ body: toSsoConnector(await connectors.get(id)) }),
    }),
    route({
      method: 'PATCH',
      path: '/sso-connectors/:id',
      operationId: 'updateSsoConnector',
      summary: 'Changes an enterprise connector; `config` is replaced as a whole, but a secret sent back masked stays.',
      scope: 'sign-in',
      params,
      body: ssoConnectorPatch,
      status: 200,
      response: ssoConnector,
      problems: ['entity.not_exists_with_id', 'connector.has_identities', ...refusals],
      handle: async (context) => ({
        body: toSsoConnector(await connectors.update(context, context.params.id, context.body)),
      }),
    }),
    route({
      method: 'DELETE',
      path: '/sso-connectors/:id',
      operationId: 'deleteSsoConnector',
      summary: 'Deletes an enterprise connector, with the identities of its people.',
      scope: 'sign-in',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => connectors.remove(context, context.params.id),
    }),
  ]
}
