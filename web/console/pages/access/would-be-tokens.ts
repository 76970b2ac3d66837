import { call } from '../../api/call.ts'
import { Problem } from '../../api/problem.ts'
import { containing } from '../../api/search-pattern.ts'
import type { Inspection } from '../../generated/inspection.ts'

/** The tokens that somebody would get from this issuer now, by their claims: one for each API resource. */
export interface WouldBe {
  /** Who that is, in words. */
  name: string
  tokens: Inspection['access']['body']['tokens']
  /** Those that the issuer would refuse: the sentence that it would answer, and for how many APIs. */
  refusals: { message: string; audiences: string[] }[]
  /** There are more API resources than are answered at once. */
  more: boolean
  /** That they belong to. */
  organizations: { id: string; name: string }[]
}

export interface WouldBeQuestion {
  /** Id, name or part of an address; empty: the application itself, as with client credentials. */
  person: string
  applicationId: string
  /** Empty: the tokens are for none. */
  organizationId: string
}

const many = { page: 1, page_size: 100 } as const

export const wouldBe = async (
  { person, applicationId, organizationId }: WouldBeQuestion,
  signal: AbortSignal,
): Promise<WouldBe> => {
  const { name, userId, organizations } = await (person === ''
    ? applicationOf(applicationId, signal)
    : userOf(person, signal))
  const query = { userId, organizationId: organizationId || undefined }
  const { body } = await call('previewTokens', { params: { id: applicationId }, query }, { signal })
  const refused = Map.groupBy(
    body.tokens.filter((one) => one.refused),
    (one) => one.refused!.message,
  )
  return {
    name,
    tokens: body.tokens.flatMap(({ claims }) => (claims ? [claims as WouldBe['tokens'][number]] : [])),
    refusals: [...refused].map(([message, all]) => ({ message, audiences: all.map(({ audience }) => audience) })),
    more: body.more,
    organizations,
  }
}

const userOf = async (text: string, signal: AbortSignal) => {
  const { body } = await call('listUsers', { query: { search: containing(text), page: 1, page_size: 1 } }, { signal })
  const [user] = body
  if (!user) throw new Problem({ status: 404, body: { code: 'entity.not_found', title: 'Nobody is called that.' } })
  const params = { userId: user.id }
  const { body: organizations } = await call('listUserOrganizations', { params, query: many }, { signal })
  return { userId: user.id, name: user.name ?? user.username ?? user.id, organizations }
}

const applicationOf = async (id: string, signal: AbortSignal) => {
  const [{ body }, { body: organizations }] = await Promise.all([
    call('getApplication', { params: { id } }, { signal }),
    call('listApplicationOrganizations', { params: { id }, query: many }, { signal }),
  ])
  return { userId: undefined, name: body.name, organizations }
}
