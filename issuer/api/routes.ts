import { accountCenterRoutes } from '../account/account-center-router.ts'
import type { Route } from '../base/route.ts'
import { type ClaimsRouteDependencies, claimsRoutes } from '../claims/router.ts'
import { connectorIdentitiesRoutes } from '../connectors/identities-router.ts'
import type { ConnectorDependencies } from '../connectors/operations.ts'
import { connectorsRoutes } from '../connectors/router.ts'
import { ssoConnectorsRoutes } from '../connectors/sso/router.ts'
import { applicationsRoutes } from '../directory/applications/router.ts'
import { type AssetDependencies, assetsRoutes } from '../directory/assets/router.ts'
import type { ConsentDependencies } from '../directory/consents/operations.ts'
import { consentsRoutes } from '../directory/consents/router.ts'
import { type EventFeedDependencies, eventsRoutes } from '../directory/events/router.ts'
import { type HookDependencies, hooksRoutes } from '../directory/hooks/router.ts'
import { logsRoutes } from '../directory/logs/router.ts'
import { type NoticeDependencies, noticesRoutes } from '../directory/notices/router.ts'
import { type OneTimeTokenDependencies, oneTimeTokensRoutes } from '../directory/one-time-tokens/router.ts'
import { jitRoutes } from '../directory/organizations/jit/router.ts'
import { membersRoutes } from '../directory/organizations/members/members-router.ts'
import { organizationRolesRoutes } from '../directory/organizations/roles/router.ts'
import { organizationsRoutes } from '../directory/organizations/router.ts'
import { organizationScopesRoutes } from '../directory/organizations/scopes/router.ts'
import { personalAccessTokensRoutes } from '../directory/personal-access-tokens/router.ts'
import { resourcesRoutes } from '../directory/resources/router.ts'
import { roleAssignmentsRoutes } from '../directory/role-assignments/router.ts'
import { rolesRoutes } from '../directory/roles/router.ts'
import { searchRoutes } from '../directory/search/router.ts'
import type { UserSessionDependencies } from '../directory/sessions/operations.ts'
import { userSessionsRoutes } from '../directory/sessions/router.ts'
import type { SignInExperienceDependencies } from '../directory/sign-in-experience/operations.ts'
import { signInExperienceRoutes } from '../directory/sign-in-experience/router.ts'
import type { MfaVerificationDependencies } from '../directory/users/factors/operations.ts'
import { mfaVerificationsRoutes } from '../directory/users/factors/router.ts'
import { identitiesRoutes } from '../directory/users/identities-router.ts'
import { type LockoutDependencies, lockoutRoutes } from '../directory/users/lockout-router.ts'
import type { UserDependencies } from '../directory/users/operations.ts'
import { usersRoutes } from '../directory/users/router.ts'
import { previewRoutes } from '../pages/preview-router.ts'
import { type TokenPreviewDependencies, tokenPreviewRoutes } from '../protocol/token-preview/router.ts'
import { type IdTokenConfigDependencies, idTokenConfigRoutes } from '../tokens/id-tokens/router.ts'
import { impersonationRequestsRoutes } from '../tokens/impersonation-requests/router.ts'
import type { SessionDependencies } from '../tokens/impersonations/operations.ts'
import { impersonationSessionsRoutes } from '../tokens/impersonations/router.ts'
import { type KeyDependencies, keysRoutes } from '../tokens/keys/router.ts'
import type { SubjectTokenDependencies } from '../tokens/subject-tokens/mint.ts'
import { impersonationRoutes } from '../tokens/subject-tokens/router.ts'

export type RouteDependencies = UserDependencies &
  MfaVerificationDependencies &
  SubjectTokenDependencies &
  SessionDependencies &
  HookDependencies &
  EventFeedDependencies &
  NoticeDependencies &
  UserSessionDependencies &
  ConsentDependencies &
  ClaimsRouteDependencies &
  TokenPreviewDependencies &
  KeyDependencies &
  IdTokenConfigDependencies &
  OneTimeTokenDependencies &
  LockoutDependencies &
  ConnectorDependencies &
  AssetDependencies &
  SignInExperienceDependencies

/** The mount table: a new room is a line. */
const routers = [
  usersRoutes,
  identitiesRoutes,
  mfaVerificationsRoutes,
  personalAccessTokensRoutes,
  userSessionsRoutes,
  resourcesRoutes,
  rolesRoutes,
  applicationsRoutes,
  consentsRoutes,
  roleAssignmentsRoutes,
  organizationsRoutes,
  membersRoutes,
  organizationRolesRoutes,
  organizationScopesRoutes,
  logsRoutes,
  searchRoutes,
  impersonationRoutes,
  impersonationRequestsRoutes,
  impersonationSessionsRoutes,
  hooksRoutes,
  eventsRoutes,
  noticesRoutes,
  claimsRoutes,
  tokenPreviewRoutes,
  keysRoutes,
  idTokenConfigRoutes,
  jitRoutes,
  oneTimeTokensRoutes,
  lockoutRoutes,
  assetsRoutes,
  signInExperienceRoutes,
  previewRoutes,
  connectorsRoutes,
  ssoConnectorsRoutes,
  connectorIdentitiesRoutes,
  accountCenterRoutes,
]

/** Every operation of the issuer, whomever it is for. */
export const issuerRoutes = (dependencies: RouteDependencies): Route[] =>
  routers.flatMap((routesOf) => routesOf(dependencies))
