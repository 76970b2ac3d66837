import { call } from '../../api/call.ts'
import { Problem } from '../../api/problem.ts'
import { containing } from '../../api/search-pattern.ts'
import { useSession } from '../../api/session.tsx'
import type { TokenType } from './kinds.ts'

type User = Awaited<ReturnType<typeof readUser>>

/** Reads somebody who is there, and answers what the script would be given of them. */
export const useTrialInput = (tokenType: TokenType) => {
  const { baseUrl } = useSession()
  return async (userText: string, applicationId: string) => {
    const { body: application } = await call('getApplication', { params: { id: applicationId } })
    const { id, name, description, type, isThirdParty, customData } = application
    const user = tokenType === 'access-token' ? await readUser(userText) : undefined
    const now = Math.floor(Date.now() / 1_000)
    const token = {
      ...(user ? { kind: 'AccessToken', accountId: user.id } : { kind: 'ClientCredentials' }),
      ...{ jti: 'trial', aud: await resourceOf(), scope: scopesOf(user), clientId: id },
      ...{ gty: user ? 'authorization_code' : 'client_credentials', iat: now, exp: now + 3_600 },
    }
    const context = {
      ...(user && { user, interaction: interactionOf(user) }),
      application: { id, name, description, type, isThirdParty, customData },
    }
    return { token, context }
  }

  async function resourceOf(): Promise<string> {
    const { body } = await call('listResources')
    const ours = body.filter(({ indicator }) => indicator !== `${baseUrl}/api`)
    return (ours.find(({ isDefault }) => isDefault) ?? ours[0])?.indicator ?? `${baseUrl}/api`
  }
}

const readUser = async (text: string) => {
  const query = { search: containing(text), enableCap: true, page: 1, page_size: 1 }
  const { body: found } = await call('listUsers', { query })
  const [first] = text === '' ? [] : found
  if (!first) throw new Problem({ status: 404, body: { code: 'entity.not_found', title: 'Nobody is called that.' } })
  const params = { userId: first.id }
  const [user, roles, organizations] = await Promise.all([
    call('getUser', { params }),
    call('listUserRoles', { params, query: { page: 1, page_size: 100 } }),
    call('listUserOrganizations', { params }),
  ])
  const resources = await call('listResources')
  const byId = new Map(resources.body.map(({ id, name, indicator }) => [id, { id, name, indicator }]))
  const withScopes = roles.body.map(async ({ id, name, description }) => {
    const { body: scopes } = await call('listRoleScopes', { params: { id } })
    return {
      ...{ id, name, description },
      scopes: scopes.map((scope) => ({
        ...{ id: scope.id, name: scope.name, description: scope.description, resourceId: scope.resourceId },
        resource: byId.get(scope.resourceId),
      })),
    }
  })
  const { ssoIdentities: _, ...rest } = { ssoIdentities: [], ...user.body }
  return {
    ...rest,
    ...{ ssoIdentities: [], mfaVerificationFactors: [], roles: await Promise.all(withScopes) },
    organizations: organizations.body.map(({ id, name, description, customData }) => ({
      ...{ id, name, description, customData },
    })),
    organizationRoles: organizations.body.flatMap(({ id, organizationRoles }) =>
      organizationRoles.map((role) => ({ organizationId: id, roleId: role.id, roleName: role.name })),
    ),
  }
}

const scopesOf = (user: User | undefined): string =>
  ['openid', ...new Set((user?.roles ?? []).flatMap(({ scopes }) => scopes.map(({ name }) => name)))].join(' ')

/** As if they had signed in now, by a password. */
const interactionOf = ({ id }: User) => ({
  ...{ interactionEvent: 'SignIn', userId: id, signInContext: { ip: '203.0.113.7', userAgent: navigator.userAgent } },
  verificationRecords: [{ id: 'trial', type: 'Password', verified: true }],
})
