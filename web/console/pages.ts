import { type ComponentType, lazy } from 'react'
import type { ConsolePage, PageProps } from './shell/console-page.ts'

/** Each page is fetched when it is first opened. */
const page = (load: () => Promise<{ default: ComponentType<PageProps> }>) => lazy(load)

/** What the console is, page by page; a new page is a row. */
export const pages: readonly ConsolePage[] = [
  { path: '/', title: 'Home', group: '', icon: 'home', key: 'h', Page: page(() => import('./pages/home/home.tsx')) },
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
]
