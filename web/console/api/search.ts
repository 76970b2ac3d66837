import type { IconName } from '../design/icon.tsx'
import { call } from './call.ts'

/** Something that has a page of its own. */
export interface Found {
  kind: string
  icon: IconName
  name: string
  detail: string
  path: string
}

/** What can be found: a kind is a row. */
const kinds = {
  user: { kind: 'User', icon: 'member', path: '/users' },
  application: { kind: 'Application', icon: 'application', path: '/applications' },
  role: { kind: 'Role', icon: 'role', path: '/roles' },
  resource: { kind: 'Resource', icon: 'resource', path: '/resources' },
  organization: { kind: 'Organization', icon: 'organization', path: '/organizations' },
  hook: { kind: 'Hook', icon: 'hook', path: '/hooks' },
} as const

/** Fewer letters would be half of everything. */
export const shortestSearch = 3

/** Everything that has the text in its names, and what has it as its id. */
export const search = async (text: string, signal: AbortSignal): Promise<Found[]> => {
  const { body } = await call('search', { query: { q: text } }, { signal })
  return body.results.map(({ kind: name, id, name: title, detail }) => {
    const { kind, icon, path } = kinds[name]
    return { kind, icon, name: title ?? id, detail: detail ?? '', path: `${path}/${id}` }
  })
}
