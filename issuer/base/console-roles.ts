import type { ManagementScope } from './authorization.ts'

/**
 * What the administration console is made of in every database; no other record can have such an id, because theirs
 * have no hyphen.
 */
export const consoleClientId = 'surrogate-console'

export interface ConsoleRole {
  id: string
  /** At first; it may be renamed. */
  name: string
  description: string
  /** Of the Management API. They never change. */
  scopes: readonly ManagementScope[]
}

/** The only user roles that carry permissions of the Management API; each by the name that invitations use. */
export const consoleRoles = {
  owner: {
    id: 'console-owner',
    name: 'Console owner',
    description: 'Console: everything, and who else uses it',
    scopes: ['all'],
  },
  operator: {
    id: 'console-operator',
    name: 'Console operator',
    description: 'Console: runs users, applications, organizations and hooks',
    scopes: ['users', 'rbac', 'organizations', 'applications', 'hooks', 'sign-in', 'read'],
  },
  support: {
    id: 'console-support',
    name: 'Console support',
    description: 'Console: reads, and acts for users',
    scopes: ['impersonation', 'read'],
  },
  integrator: {
    id: 'console-integrator',
    name: 'Console integrator',
    description: 'Console: applications and hooks',
    scopes: ['applications', 'hooks'],
  },
  auditor: {
    id: 'console-auditor',
    name: 'Console auditor',
    description: 'Console: reads all but secrets',
    scopes: ['read'],
  },
} as const satisfies Record<string, ConsoleRole>

export type ConsoleRoleName = keyof typeof consoleRoles

export const consoleRoleNames = Object.keys(consoleRoles) as ConsoleRoleName[]

const ids: ReadonlySet<string> = new Set(Object.values(consoleRoles).map(({ id }) => id))

export const isConsoleRole = (roleId: string): boolean => ids.has(roleId)

/** The ids as a list of SQL. */
export const consoleRoleIdsSql = Object.values(consoleRoles)
  .map(({ id }) => `'${id}'`)
  .join(', ')
