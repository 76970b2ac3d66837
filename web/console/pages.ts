import type { ComponentType } from 'react'
import { evaluating, inspecting } from './api/inspecting.ts'
import { fetched } from './components/fetched.ts'
import type { BesidePage, ConsolePage, PageProps } from './shell/console-page.ts'

/** Each page is fetched when it is first opened. */
const page = (load: () => Promise<{ default: ComponentType<PageProps> } & BesidePage>) =>
  fetched<PageProps, BesidePage>(load)

/** What the console is, page by page; a new page is a row. */
export const pages: readonly ConsolePage[] = [
  { path: '/', title: 'Home', group: '', icon: 'home', key: 'h', Page: page(() => import('./pages/home/home.tsx')) },
  {
    ...{ path: '/live', title: 'Live', group: 'Gateway', icon: 'live', key: 'l', scopes: inspecting },
    words: 'tail requests decisions denied stream traffic',
    Page: page(() => import('./pages/live/live.tsx')),
  },
  {
    ...{ path: '/why', title: 'Why', group: 'Gateway', icon: 'why', key: 'y', scopes: inspecting },
    words: 'request id denied refused explain 403 401 404',
    Page: page(() => import('./pages/why/ask.tsx')),
  },
  {
    ...{ path: '/why/:request', title: 'Why', scopes: inspecting },
    Page: page(() => import('./pages/why/why.tsx')),
  },
  {
    ...{ path: '/policies', title: 'Policies', group: 'Gateway', icon: 'policy', key: 'z', scopes: inspecting },
    words: 'rego rules tests playground shadow patch evaluate',
    Page: page(() => import('./pages/policies/policies.tsx')),
  },
  {
    ...{ path: '/access', title: 'Access', group: 'Gateway', icon: 'access', key: 'j', scopes: evaluating },
    words: 'preview who may what routes methods rights dry run',
    Page: page(() => import('./pages/access/access.tsx')),
  },
  {
    ...{ path: '/gateway', title: 'Gateway', group: 'Gateway', icon: 'gateway', key: 'x', scopes: inspecting },
    words: 'routes match upstreams targets health issuers keys limits configuration',
    Page: page(() => import('./pages/gateway/gateway.tsx')),
  },
  {
    ...{ path: '/gateway/:tab', title: 'Gateway', scopes: inspecting },
    Page: page(() => import('./pages/gateway/gateway.tsx')),
  },
  {
    ...{ path: '/users', title: 'Users', group: 'People', icon: 'users', key: 'u', operation: 'listUsers' },
    words: 'people accounts suspend password sessions',
    Page: page(() => import('./pages/users/users.tsx')),
  },
  {
    ...{ path: '/users/new', title: 'New user', operation: 'createUser' },
    Page: page(() => import('./pages/users/new-user.tsx')),
  },
  {
    ...{ path: '/users/:id/:tab?', title: 'User', operation: 'getUser' },
    Page: page(() => import('./pages/users/user.tsx')),
  },
  {
    ...{ path: '/roles', title: 'Roles', group: 'People', icon: 'role', key: 'r', operation: 'listRoles' },
    words: 'permissions rights rbac',
    Page: page(() => import('./pages/roles/roles.tsx')),
  },
  {
    ...{ path: '/roles/new', title: 'New role', operation: 'createRole' },
    Page: page(() => import('./pages/roles/new-role.tsx')),
  },
  {
    ...{ path: '/roles/:id/:tab?', title: 'Role', operation: 'getRole' },
    Page: page(() => import('./pages/roles/role.tsx')),
  },
  {
    ...{ path: '/organizations', title: 'Organizations', group: 'People', icon: 'organization', key: 'o' },
    ...{ operation: 'listOrganizations', words: 'tenants teams members jit joining' },
    Page: page(() => import('./pages/organizations/organizations.tsx')),
  },
  {
    ...{ path: '/organizations/new', title: 'New organization', operation: 'createOrganization' },
    Page: page(() => import('./pages/organizations/new-organization.tsx')),
  },
  {
    ...{ path: '/organizations/:id/:tab?', title: 'Organization', operation: 'getOrganization' },
    Page: page(() => import('./pages/organizations/organization.tsx')),
  },
  {
    ...{ path: '/organization-template/roles/:id', title: 'Organization role', operation: 'getOrganizationRole' },
    Page: page(() => import('./pages/organization-template/role.tsx')),
  },
  {
    ...{ path: '/organization-template/permissions/:id', title: 'Organization permission' },
    ...{ operation: 'getOrganizationScope' },
    Page: page(() => import('./pages/organization-template/permission.tsx')),
  },
  {
    ...{ path: '/organization-template', title: 'Organization template', operation: 'listOrganizationRoles' },
    words: 'organization roles permissions',
    Page: page(() => import('./pages/organization-template/template.tsx')),
  },
  {
    ...{ path: '/organization-template/:tab', title: 'Organization template', operation: 'listOrganizationRoles' },
    Page: page(() => import('./pages/organization-template/template.tsx')),
  },
  {
    ...{ path: '/impersonations', title: 'Impersonation', group: 'People', icon: 'mask', key: 'f' },
    ...{ operation: 'listImpersonations', words: 'support acting for sessions approvals subject tokens export' },
    Page: page(() => import('./pages/impersonations/impersonations.tsx')),
  },
  {
    ...{ path: '/impersonations/new', title: 'Act for a user', operation: 'createSubjectToken' },
    Page: page(() => import('./pages/impersonations/act.tsx')),
  },
  {
    ...{ path: '/impersonations/requests', title: 'Requests to customers', operation: 'listImpersonationRequests' },
    Page: page(() => import('./pages/impersonations/requests.tsx')),
  },
  {
    ...{ path: '/impersonations/requests/:id', title: 'Request to a customer', operation: 'getImpersonationRequest' },
    Page: page(() => import('./pages/impersonations/request.tsx')),
  },
  {
    ...{ path: '/impersonations/:id', title: 'Session of impersonation', operation: 'getImpersonationTimeline' },
    Page: page(() => import('./pages/impersonations/impersonation.tsx')),
  },
  {
    ...{ path: '/applications', title: 'Applications', group: 'APIs', icon: 'application', key: 'a' },
    ...{ operation: 'listApplications', words: 'clients redirect uris secrets guide' },
    Page: page(() => import('./pages/applications/applications.tsx')),
  },
  {
    ...{ path: '/applications/new', title: 'New application', operation: 'createApplication' },
    Page: page(() => import('./pages/applications/new-application.tsx')),
  },
  {
    ...{ path: '/applications/:id/:tab?', title: 'Application', operation: 'getApplication' },
    Page: page(() => import('./pages/applications/application.tsx')),
  },
  {
    ...{
      path: '/resources',
      title: 'Resources',
      group: 'APIs',
      icon: 'resource',
      key: 'p',
      operation: 'listResources',
    },
    words: 'apis permissions scopes audience default indicator',
    Page: page(() => import('./pages/resources/resources.tsx')),
  },
  {
    ...{ path: '/resources/new', title: 'New resource', operation: 'createResource' },
    Page: page(() => import('./pages/resources/new-resource.tsx')),
  },
  {
    ...{ path: '/resources/:id/:tab?', title: 'Resource', operation: 'getResource' },
    Page: page(() => import('./pages/resources/resource.tsx')),
  },
  {
    ...{ path: '/hooks', title: 'Hooks', group: 'Webhooks', icon: 'hook', key: 'w', operation: 'listHooks' },
    words: 'webhooks deliveries signing key',
    Page: page(() => import('./pages/hooks/hooks.tsx')),
  },
  {
    ...{ path: '/hooks/new', title: 'New hook', operation: 'createHook' },
    Page: page(() => import('./pages/hooks/new-hook.tsx')),
  },
  {
    ...{ path: '/hooks/:id/deliveries/:deliveryId', title: 'Delivery', operation: 'getHookDelivery' },
    Page: page(() => import('./pages/hooks/delivery.tsx')),
  },
  {
    ...{ path: '/hooks/:id/:tab?', title: 'Hook', operation: 'getHook' },
    Page: page(() => import('./pages/hooks/hook.tsx')),
  },
  {
    ...{ path: '/sign-in-settings', title: 'Sign-in settings', group: 'Service', icon: 'settings', key: 's' },
    ...{ operation: 'getSignInExperience', words: 'identifiers password policy mfa captcha lockout account sessions' },
    Page: page(() => import('./pages/sign-in-settings/sign-in-settings.tsx')),
  },
  {
    ...{ path: '/sign-in-settings/:tab', title: 'Sign-in settings', operation: 'getSignInExperience' },
    Page: page(() => import('./pages/sign-in-settings/sign-in-settings.tsx')),
  },
  {
    ...{ path: '/branding', title: 'Branding', group: 'Service', icon: 'branding', key: 'b' },
    ...{ operation: 'getSignInExperience', words: 'colours logo css theme preview' },
    Page: page(() => import('./pages/branding/branding.tsx')),
  },
  {
    ...{ path: '/messages', title: 'Messages', group: 'Service', icon: 'message', key: 'n' },
    ...{ operation: 'listConnectors', words: 'mail sms smtp twilio templates connectors' },
    Page: page(() => import('./pages/messages/messages.tsx')),
  },
  {
    ...{ path: '/messages/new/:type', title: 'New provider of messages', operation: 'createConnector' },
    Page: page(() => import('./pages/messages/new-message-connector.tsx')),
  },
  {
    ...{ path: '/messages/:id/:tab?', title: 'Provider of messages', operation: 'getConnector' },
    Page: page(() => import('./pages/messages/message-connector.tsx')),
  },
  {
    ...{ path: '/identity-providers', title: 'Identity providers', group: 'Service', icon: 'provider', key: 'i' },
    ...{ operation: 'listConnectors', words: 'social google microsoft apple github sso enterprise connectors' },
    Page: page(() => import('./pages/identity-providers/identity-providers.tsx')),
  },
  {
    ...{ path: '/identity-providers/new/social', title: 'New identity provider', operation: 'createConnector' },
    Page: page(() => import('./pages/identity-providers/new-social.tsx')),
  },
  {
    ...{ path: '/identity-providers/new/company', title: 'New company', operation: 'createSsoConnector' },
    Page: page(() => import('./pages/identity-providers/new-company.tsx')),
  },
  {
    ...{ path: '/identity-providers/social/:id', title: 'Identity provider', operation: 'getConnector' },
    Page: page(() => import('./pages/identity-providers/social.tsx')),
  },
  {
    ...{ path: '/identity-providers/company/:id', title: 'Company', operation: 'getSsoConnector' },
    Page: page(() => import('./pages/identity-providers/company.tsx')),
  },
  {
    ...{ path: '/developer', title: 'Developer', group: 'Service', icon: 'code', key: 'd' },
    words: 'api log curl token jwt openapi reference',
    Page: page(() => import('./pages/developer/developer.tsx')),
  },
  { path: '/developer/:tab', title: 'Developer', Page: page(() => import('./pages/developer/developer.tsx')) },
  {
    ...{ path: '/events/types/:type', title: 'Kind of event' },
    Page: page(() => import('./pages/events/event-type.tsx')),
  },
  {
    ...{ path: '/events', title: 'Events', group: 'Webhooks', icon: 'event', key: 'e' },
    ...{ operation: 'readEvents', words: 'catalogue feed examples payloads' },
    Page: page(() => import('./pages/events/events.tsx')),
  },
  {
    ...{ path: '/events/:tab', title: 'Feed of events', operation: 'readEvents' },
    Page: page(() => import('./pages/events/events.tsx')),
  },
  {
    ...{ path: '/audit', title: 'Audit trail', group: 'Service', icon: 'audit', key: 't' },
    ...{ operation: 'listLogs', words: 'logs history who did what' },
    Page: page(() => import('./pages/audit/audit.tsx')),
  },
  {
    ...{ path: '/audit/:id', title: 'Row of the audit trail', operation: 'getLog' },
    Page: page(() => import('./pages/audit/audit-row.tsx')),
  },
  {
    ...{ path: '/keys', title: 'Keys', group: 'Service', icon: 'key', key: 'k' },
    ...{ operation: 'listSigningKeys', words: 'signing rotation jwks leaked' },
    Page: page(() => import('./pages/keys/keys.tsx')),
  },
  {
    ...{ path: '/members', title: 'Members', group: 'Service', icon: 'member', key: 'm' },
    ...{ operation: 'listRoleUsers', words: 'owners operators auditors console roles invite' },
    Page: page(() => import('./pages/members/members.tsx')),
  },
  {
    ...{ path: '/claims', title: 'Custom claims', group: 'Service', icon: 'claims', key: 'c' },
    ...{ operation: 'getClaimsScript', words: 'jwt customizer script tokens' },
    Page: page(() => import('./pages/claims/claims.tsx')),
  },
  {
    ...{ path: '/claims/:kind', title: 'Custom claims', operation: 'getClaimsScript' },
    Page: page(() => import('./pages/claims/claims.tsx')),
  },
]
