import { z } from 'zod'
import { type Route, route } from '../base/route.ts'
import { id } from '../base/schemas.ts'
import {
  authorizationUriBody,
  connector,
  connectorFactory,
  connectorPatch,
  newConnector,
  testBody,
  toConnector,
  toFactory,
} from './connector.ts'
import { federationProblems } from './federation-problem.ts'
import { type ConnectorDependencies, connectorOperations } from './operations.ts'

const params = z.object({ id })

export const connectorsRoutes = (dependencies: ConnectorDependencies): Route[] => {
  const connectors = connectorOperations(dependencies)
  return [
    route({
      method: 'GET',
      path: '/connector-factories',
      operationId: 'listConnectorFactories',
      summary: 'Lists the kinds of connectors there are, with the JSON Schema of their configuration.',
      scope: 'sign-in',
      status: 200,
      response: z.array(connectorFactory),
      handle: async () => ({ body: connectors.factories().map(toFactory) }),
    }),
    route({
      method: 'GET',
      path: '/connectors',
      operationId: 'listConnectors',
      summary: 'Lists connectors, oldest first. Their secrets are masked.',
      scope: 'sign-in',
      status: 200,
      response: z.array(connector),
      handle: async () => ({ body: (await connectors.list()).map(toConnector) }),
    }),
    route({
      method: 'POST',
      path: '/connectors',
      operationId: 'createConnector',
      summary: 'Creates a connector. One for mail or SMS takes the place of the one before.',
      scope: 'sign-in',
      body: newConnector,
      status: 200,
      response: connector,
      problems: [
        'entity.not_found',
        'connector.invalid_config',
        'connector.target_not_allowed',
        'connector.provider_unavailable',
        'connector.should_specify_target',
        'connector.can_not_modify_target',
        'connector.multiple_target_with_same_platform',
        'connector.has_identities',
      ],
      handle: async (context) => ({ body: toConnector(await connectors.create(context, context.body)) }),
    }),
    route({
      method: 'GET',
      path: '/connectors/:id',
      operationId: 'getConnector',
      summary: 'Reads a connector. Its secrets are masked.',
      scope: 'sign-in',
      params,
      status: 200,
      response: connector,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id: connectorId } }) => ({ body: toConnector(await connectors.get(connectorId)) }),
    }),
    route({
      method: 'PATCH',
      path: '/connectors/:id',
      operationId: 'updateConnector',
      summary: 'Changes a connector; `config` is replaced as a whole, but a secret that is sent back masked stays.',
      scope: 'sign-in',
      params,
      body: connectorPatch,
      status: 200,
      response: connector,
      problems: [
        'entity.not_found',
        'entity.not_exists',
        'entity.invalid_input',
        'connector.invalid_config',
        'connector.target_not_allowed',
        'connector.provider_unavailable',
        'connector.can_not_modify_target',
        'connector.has_identities',
      ],
      handle: async (context) => ({
        body: toConnector(await connectors.update(context, context.params.id, context.body)),
      }),
    }),
    route({
      method: 'DELETE',
      path: '/connectors/:id',
      operationId: 'deleteConnector',
      summary: 'Deletes a connector.',
      scope: 'sign-in',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => connectors.remove(context, context.params.id),
    }),
    route({
      method: 'POST',
      path: '/connectors/:id/authorization-uri',
      operationId: 'createConnectorAuthorizationUri',
      summary: 'Begins a sign-in at a social connector, whose answer links a user (`POST /users/{userId}/identities`).',
      scope: 'sign-in',
      params,
      body: authorizationUriBody,
      // Every request has a nonce of its own.
      idempotency: 'none',
      status: 200,
      response: z.strictObject({ redirectTo: z.string() }),
      problems: ['entity.not_exists_with_id', ...federationProblems],
      handle: async (context) => ({
        body: { redirectTo: await connectors.authorizationUri(context, context.params.id, context.body) },
      }),
    }),
    route({
      method: 'POST',
      path: '/connectors/:factoryId/test',
      operationId: 'testConnector',
      summary: 'Sends a message with a configuration that need not be saved, and waits for what comes of it.',
      scope: 'sign-in',
      params: z.object({ factoryId: id }),
      body: testBody,
      // Its message is committed while it waits; and an answer of an hour ago says nothing of the provider of now.
      idempotency: 'none',
      status: 204,
      problems: [
        'entity.not_found',
        'connector.invalid_config',
        'connector.target_not_allowed',
        'connector.send_failed',
        'hook.relay_unavailable',
        'request.message_rate_limited',
      ],
      handle: (context) => connectors.test(context, context.params.factoryId, context.body),
    }),
  ]
}
