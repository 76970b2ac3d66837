import { z } from 'zod'
import type { Route } from '../../base/route.ts'
import { id, jsonObject } from '../../base/schemas.ts'
import { grantQuery, toUserSession, userGrants, userSession, userSessions } from '../../directory/sessions/records.ts'
import type { AccountOperations } from '../operations/index.ts'
import { accountRoute, reauthenticatedProblems } from './route.ts'

const ofSession = z.object({ sessionId: id })
const ofGrant = z.object({ grantId: id })
const readProblems = ['account_center.not_enabled', 'account_center.field_not_enabled'] as const

/** `current`: all but the one in which the token was got. */
const whichSessions = z.object({ keep: z.literal('current').optional() })

export const exportedAccount = z.looseObject({ user: jsonObject, history: z.array(jsonObject) })

/** Where one is signed in, what applications may do for one, and the end of it all. */
export const myAccessRoutes = ({ sessions, applications, data }: AccountOperations): Route[] => [
  accountRoute({
    method: 'GET',
    path: '/my-account/sessions',
    operationId: 'listMySessions',
    summary: 'Lists the browsers in which the person is signed in, newest first (`urn:logto:scope:sessions`).',
    status: 200,
    response: userSessions,
    problems: readProblems,
    handle: async ({ person }) => ({ body: { sessions: (await sessions.list(person)).map(toUserSession) } }),
  }),
  accountRoute({
    method: 'GET',
    path: '/my-account/sessions/:sessionId',
    operationId: 'getMySession',
    summary: 'Reads a browser in which the person is signed in.',
    params: ofSession,
    status: 200,
    response: userSession,
    problems: [...readProblems, 'oidc.session_not_found'],
    handle: async ({ person, params: { sessionId } }) => ({
      body: toUserSession(await sessions.get(person, sessionId)),
    }),
  }),
  accountRoute({
    method: 'DELETE',
    path: '/my-account/sessions',
    operationId: 'endMySessions',
    summary: 'Signs the person out everywhere; with `keep=current` everywhere else. Needs a verification.',
    query: whichSessions,
    status: 204,
    problems: reauthenticatedProblems,
    handle: (call) => (call.query.keep === 'current' ? sessions.endOthers(call) : sessions.endAll(call)),
  }),
  accountRoute({
    method: 'DELETE',
    path: '/my-account/sessions/:sessionId',
    operationId: 'endMySession',
    summary: 'Signs the person out of one browser, and ends all grants of it. Needs a verification.',
    params: ofSession,
    status: 204,
    problems: [...reauthenticatedProblems, 'oidc.session_not_found'],
    handle: (call) => sessions.end(call, call.params.sessionId),
  }),
  accountRoute({
    method: 'GET',
    path: '/my-account/grants',
    operationId: 'listMyGrants',
    summary: 'Lists what applications may do for the person, newest first (`urn:logto:scope:sessions`).',
    query: grantQuery,
    status: 200,
    response: userGrants,
    problems: readProblems,
    handle: async ({ person, query: { appType } }) => ({
      body: { grants: await applications.listGrants(person, appType) },
    }),
  }),
  accountRoute({
    method: 'DELETE',
    path: '/my-account/grants/:grantId',
    operationId: 'endMyGrant',
    summary:
      'Ends a grant; of a third-party application the consent, and with it all its grants. Needs a verification.',
    params: ofGrant,
    status: 204,
    problems: [...reauthenticatedProblems, 'oidc.invalid_grant'],
    handle: (call) => applications.endGrant(call, call.params.grantId),
  }),
  accountRoute({
    method: 'POST',
    path: '/my-account/export',
    operationId: 'exportMyAccount',
    summary: 'Answers everything that is kept about the person, without anything secret. Needs a verification.',
    status: 200,
    response: exportedAccount,
    problems: reauthenticatedProblems,
    handle: async (call) => ({ body: await data.export(call) }),
  }),
  accountRoute({
    method: 'DELETE',
    path: '/my-account',
    operationId: 'deleteMyAccount',
    summary: 'Deletes the account, and ends everything that anybody may do with it. Needs a verification.',
    status: 204,
    problems: reauthenticatedProblems,
    handle: (call) => data.delete(call),
  }),
]
