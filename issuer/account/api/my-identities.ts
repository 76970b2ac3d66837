import { z } from 'zod'
import type { ProblemCode } from '../../base/errors/problems.ts'
import type { Route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import type { AccountOperations } from '../operations/index.ts'
import { accountRoute, reauthenticatedProblems } from './route.ts'

const body = z.object({ newIdentifierVerificationRecordId: id })
const linkProblems: readonly ProblemCode[] = [
  ...reauthenticatedProblems,
  'verification_record.not_found',
  'user.identity_already_in_use',
]

/** Who one is at other providers. All need the scope `identities`. */
export const myIdentityRoutes = ({ identities }: AccountOperations): Route[] => [
  accountRoute({
    method: 'POST',
    path: '/my-account/identities',
    operationId: 'linkMyIdentity',
    summary: 'Links the identity that a provider has confirmed. Needs a verification besides.',
    body,
    status: 204,
    problems: linkProblems,
    handle: (call) =>
      identities.link(call, { verificationId: call.body.newIdentifierVerificationRecordId, replaces: false }),
  }),
  accountRoute({
    method: 'PUT',
    path: '/my-account/identities',
    operationId: 'replaceMyIdentity',
    summary: 'The same, also instead of another one at the same provider.',
    body,
    status: 204,
    problems: linkProblems,
    handle: (call) =>
      identities.link(call, { verificationId: call.body.newIdentifierVerificationRecordId, replaces: true }),
  }),
  accountRoute({
    method: 'DELETE',
    path: '/my-account/identities/:target',
    operationId: 'unlinkMyIdentity',
    summary: 'Unlinks the identity at a provider. Needs a verification.',
    params: z.object({ target: z.string().min(1).max(128) }),
    status: 204,
    problems: [...reauthenticatedProblems, 'user.identity_not_exist', 'user.last_sign_in_method_required'],
    handle: (call) => identities.unlink(call, call.params.target),
  }),
]
