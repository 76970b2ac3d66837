import type { ManagementTest } from '../../../support/management.ts'

/** Makes records through the API, each with a name of its own. */
export const recordsOf = (api: () => ManagementTest) => {
  let counter = 0
  const named = (noun: string) => `${noun} ${++counter}`
  return {
    organization: (input: object = {}) =>
      api().expect(201, 'POST', '/organizations', { name: named('Organization'), ...input }),
    role: (input: object = {}) => api().expect(201, 'POST', '/organization-roles', { name: named('Role'), ...input }),
    scope: (input: object = {}) =>
      api().expect(201, 'POST', '/organization-scopes', { name: `scope:${++counter}`, ...input }),
    user: (input: object = {}) => api().expect(200, 'POST', '/users', { name: named('User'), ...input }),
    application: async (input: object = {}) => {
      const { secret: _, ...application } = await api().expect(200, 'POST', '/applications', {
        name: named('Application'),
        type: 'MachineToMachine',
        ...input,
      })
      return application
    },
    /** A permission of an API resource of its own. */
    resourceScope: async (input: object = {}) => {
      const { scopes: _, ...resource } = await api().expect(201, 'POST', '/resources', {
        name: named('Resource'),
        indicator: `https://${++counter}.test`,
      })
      const scope = await api().expect(201, 'POST', `/resources/${resource.id}/scopes`, { name: 'read', ...input })
      return { resource, scope }
    },
  }
}
