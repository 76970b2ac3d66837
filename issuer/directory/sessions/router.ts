import { z } from 'zod'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { patchSetting, readSetting } from '../../base/settings-store.ts'
import { sessionSettings } from '../../tokens/sessions/session-settings.ts'
import { type UserSessionDependencies, userSessionOperations } from './operations.ts'
import { endSessionQuery, grantQuery, userGrants, userSession, userSessions } from './records.ts'

const params = z.object({ userId: id })
const ofSession = params.extend({ sessionId: id })
const ofGrant = params.extend({ grantId: id })

export const userSessionsRoutes = (dependencies: UserSessionDependencies): Route[] => {
  const { database, mutate, settings } = dependencies
  const sessions = userSessionOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/users/:userId/sessions',
      operationId: 'listUserSessions',
      summary: 'Lists the browsers in which a user is signed in, newest first.',
      scope: 'users',
      params,
      status: 200,
      response: userSessions,
      problems: ['entity.not_found'],
      handle: async ({ params: { userId } }) => ({ body: { sessions: await sessions.list(userId) } }),
    }),
    route({
      method: 'GET',
      path: '/users/:userId/sessions/:sessionId',
      operationId: 'getUserSession',
      summary: 'Reads a browser in which a user is signed in.',
      scope: 'users',
      params: ofSession,
      status: 200,
      response: userSession,
      problems: ['oidc.session_not_found'],
      handle: async ({ params: { userId, sessionId } }) => ({ body: await sessions.get(userId, sessionId) }),
    }),
    route({
      method: 'DELETE',
      path: '/users/:userId/sessions/:sessionId',
      operationId: 'endUserSession',
      summary: 'Signs a user out of one browser, and ends all grants of it, those with offline access too.',
      scope: 'users',
      params: ofSession,
      query: endSessionQuery,
      status: 204,
      problems: ['oidc.session_not_found'],
      handle: (context) => sessions.end(context, context.params.userId, context.params.sessionId),
    }),
    route({
      method: 'GET',
      path: '/users/:userId/grants',
      operationId: 'listUserGrants',
      summary: 'Lists what applications may do for a user who signed in for them, newest first.',
      scope: 'users',
      params,
      query: grantQuery,
      status: 200,
      response: userGrants,
      problems: ['entity.not_found'],
      handle: async ({ params: { userId }, query: { appType } }) => ({
        body: { grants: await sessions.listGrants(userId, appType) },
      }),
    }),
    route({
      method: 'DELETE',
      path: '/users/:userId/grants/:grantId',
      operationId: 'endUserGrant',
      summary: 'Ends a grant: its tokens stop working at once. Ending it again changes nothing.',
      scope: 'users',
      params: ofGrant,
      status: 204,
      problems: ['oidc.invalid_grant'],
      handle: (context) => sessions.endGrant(context, context.params.userId, context.params.grantId),
    }),
    route({
      method: 'GET',
      path: '/configs/oidc/session',
      operationId: 'getSessionSettings',
      summary: 'Reads how long sessions last, in seconds: `ttl` from signing in, `idleTtl` from their last use.',
      scope: 'sign-in',
      status: 200,
      response: sessionSettings.schema,
      handle: async () => ({ body: await readSetting(database.query, sessionSettings) }),
    }),
    route({
      method: 'PATCH',
      path: '/configs/oidc/session',
      operationId: 'updateSessionSettings',
      summary: 'Sets how long sessions last that begin, or are renewed by signing in again, from now on.',
      scope: 'sign-in',
      body: sessionSettings.patch,
      status: 200,
      response: sessionSettings.schema,
      async handle(context) {
        const body = await mutate(context, ({ trx }) => patchSetting(trx, sessionSettings, context.body))
        await settings.refreshed()
        return { body }
      },
    }),
  ]
}
