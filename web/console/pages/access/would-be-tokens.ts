import { call } from '../../api/call.ts'
import { Problem } from '../../api/problem.ts'
import { containing } from '../../api/search-pattern.ts'

/** The claims of the tokens that somebody would get from this issuer now: one for each API resource. */
export interface WouldBe {
  /** Who that is, in words. */
  name: string
  tokens: { iss: string; aud: string; sub: string; client_id: string; scope: string }[]
}

/** Gateways take so many. */
const mostTokens = 32
const many = { page: 1, page_size: 100 } as const

/**
 * @param person id, name or part of an address; empty: the application itself, as with client credentials.
 */
export const wouldBe = async (
  { baseUrl, person, applicationId }: { baseUrl: string; person: string; applicationId: string },
  signal: AbortSignal,
): Promise<WouldBe> => {
  const [subject, { body: resources }] = await Promise.all([
    person === '' ? applicationOf(applicationId, signal) : userOf(person, signal),
    call('listResources', {}, { signal }),
  ])
  const scopes = await Promise.all(
    subject.roleIds.map(async (id) => (await call('listRoleScopes', { params: { id } }, { signal })).body),
  )
  const held = scopes.flat()
  return {
    name: subject.name,
    tokens: resources.slice(0, mostTokens).map(({ id, indicator }) => ({
      ...{ iss: `${baseUrl}/oidc`, aud: indicator, sub: subject.id, client_id: applicationId },
      scope: [...new Set(held.filter(({ resourceId }) => resourceId === id).map(({ name }) => name))].join(' '),
    })),
  }
}

const userOf = async (text: string, signal: AbortSignal) => {
  const { body } = await call('listUsers', { query: { search: containing(text), page: 1, page_size: 1 } }, { signal })
  const [user] = body
  if (!user) throw new Problem({ status: 404, body: { code: 'entity.not_found', title: 'Nobody is called that.' } })
  const { body: roles } = await call('listUserRoles', { params: { userId: user.id }, query: many }, { signal })
  return { id: user.id, name: user.name ?? user.username ?? user.id, roleIds: roles.map(({ id }) => id) }
}

const applicationOf = async (id: string, signal: AbortSignal) => {
  const [{ body }, { body: roles }] = await Promise.all([
    call('getApplication', { params: { id } }, { signal }),
    call('listApplicationRoles', { params: { id }, query: many }, { signal }),
  ])
  return { id, name: body.name, roleIds: roles.map((role) => role.id) }
}
