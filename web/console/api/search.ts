import type { IconName } from '../design/icon.tsx'
import { call } from './call.ts'
import { isAllowed, type OperationId } from './operations.ts'
import { containing } from './search-pattern.ts'

/** Something that has a page of its own. */
export interface Found {
  kind: string
  icon: IconName
  id: string
  name: string
  detail?: string
  path: string
}

interface Kind {
  kind: string
  icon: IconName
  list: OperationId
  read: OperationId
  /** Of the parameter in the path of `read`. */
  parameter: string
  path(id: string): string
  name(row: Row): string
  detail?(row: Row): string
}

type Row = { id: string } & Record<string, string | null | undefined>

/** What can be found: a kind is a row. */
const kinds: readonly Kind[] = [
  {
    ...{ kind: 'User', icon: 'member', list: 'listUsers', read: 'getUser', parameter: 'userId' },
    path: (id) => `/users/${id}`,
    name: ({ name, username, primaryEmail, id }) => name || username || primaryEmail || id,
    detail: ({ primaryEmail, username }) => primaryEmail || username || '',
  },
  {
    ...{ kind: 'Application', icon: 'application', list: 'listApplications', read: 'getApplication', parameter: 'id' },
    path: (id) => `/applications/${id}`,
    name: ({ name }) => name ?? '',
    detail: ({ type }) => type ?? '',
  },
  {
    ...{ kind: 'Role', icon: 'role', list: 'listRoles', read: 'getRole', parameter: 'id' },
    path: (id) => `/roles/${id}`,
    name: ({ name }) => name ?? '',
    detail: ({ description }) => description ?? '',
  },
  {
    ...{ kind: 'Resource', icon: 'resource', list: 'listResources', read: 'getResource', parameter: 'id' },
    path: (id) => `/resources/${id}`,
    name: ({ name }) => name ?? '',
    detail: ({ indicator }) => indicator ?? '',
  },
  {
    ...{
      kind: 'Organization',
      icon: 'organization',
      list: 'listOrganizations',
      read: 'getOrganization',
      parameter: 'id',
    },
    path: (id) => `/organizations/${id}`,
    name: ({ name }) => name ?? '',
    detail: ({ description }) => description ?? '',
  },
  {
    ...{ kind: 'Hook', icon: 'hook', list: 'listHooks', read: 'getHook', parameter: 'id' },
    path: (id) => `/hooks/${id}`,
    name: ({ name, id }) => name || id,
  },
]

/** From so many letters on names are looked for; fewer would be half of everything. */
const shortestName = 3
const eachKind = 5

/** Everything whose name has the text in it, and what has it as its id. */
export const search = async (text: string, scopes: readonly string[], signal: AbortSignal): Promise<Found[]> => {
  const allowed = kinds.filter(({ list }) => isAllowed(list, scopes))
  const byId = /^[\w-]{8,64}$/.test(text) ? allowed.map((kind) => readById(kind, text, signal)) : []
  const byName = text.length >= shortestName ? allowed.map((kind) => listByName(kind, text, signal)) : []
  const found = (await Promise.all([...byId, ...byName])).flat()
  return [...new Map(found.map((one) => [one.path, one])).values()]
}

const toFound = ({ kind, icon, path, name, detail }: Kind, row: Row): Found => ({
  ...{ kind, icon, id: row.id, name: name(row), path: path(row.id) },
  ...(detail && { detail: detail(row) }),
})

const readById = async (kind: Kind, id: string, signal: AbortSignal): Promise<Found[]> => {
  const answer = await call(kind.read, { params: { [kind.parameter]: id } as never }, { signal }).catch(() => undefined)
  return answer ? [toFound(kind, answer.body as unknown as Row)] : []
}

const listByName = async (kind: Kind, text: string, signal: AbortSignal): Promise<Found[]> => {
  const query = { search: containing(text), page: 1, page_size: eachKind }
  const answer = await call(kind.list, { query }, { signal }).catch(() => undefined)
  const rows = (answer?.body ?? []) as unknown as Row[]
  // Some lists take no search.
  const has = (row: Row) => Object.values(row).some((value) => String(value).toLowerCase().includes(text.toLowerCase()))
  return rows.filter(has).map((row) => toFound(kind, row))
}
