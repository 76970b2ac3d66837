/** What the permissions of each role mean, for whoever gives it. */
export const abilities = {
  owner: 'Everything, also keys, custom claims, secrets, and who is a member here.',
  operator:
    'Runs users, roles, resources, organizations, applications, hooks and sign-in settings, and reads all but secrets. Decides which providers are believed: give it to people whom you trust nearly as much as owners. No keys, no custom claims, no impersonation.',
  support: 'Acts for users where the rules allow it, and reads all but secrets. Changes nothing else.',
  integrator: 'Makes applications and hooks, with their secrets. Sees nothing else.',
  auditor: 'Reads all but secrets. Changes nothing.',
} as const

export const titles = {
  owner: 'Owners',
  operator: 'Operators',
  support: 'Support',
  integrator: 'Integrators',
  auditor: 'Auditors',
} as const
