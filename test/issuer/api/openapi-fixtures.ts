import { randomUUID } from 'node:crypto'
import { signInExperience } from '../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { tokenDigest } from '../../../issuer/tokens/token-digest.ts'
import type { ManagementTest } from '../../support/management.ts'

/**
 * The records that a generated request may name: `ids` stand in paths, by the path up to them, and `members` in bodies,
 * by their name. Made anew when an operation has ended what another is about. What a path names is related to what it
 * names before (the role has the user); what a body names is not yet.
 */
export interface Fixtures {
  ids: Readonly<Record<string, string>>
  members: Readonly<Record<string, unknown>>
}

export const createFixtures = async (api: ManagementTest): Promise<Fixtures> => {
  const nonce = randomUUID()
  const post = async (path: string, body: unknown) => {
    const answer = await api.call('POST', path, body)
    if (answer.status >= 300) throw new Error(`POST ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const create = async (path: string, body: unknown): Promise<string> => (await post(path, body)).id
  const userOf = (name: string) => create('/users', { name })
  const roleOf = (name: string, type: string) => create('/roles', { name: `${name} ${nonce}`, description: 'x', type })
  const applicationOf = (name: string) => create('/applications', { name, type: 'MachineToMachine' })

  const [user, freeUser] = [await userOf('Ada'), await userOf('Grace')]
  const [role, freeRole] = [await roleOf('has', 'User'), await roleOf('free', 'User')]
  const [machineRole, freeMachineRole] = [await roleOf('m', 'MachineToMachine'), await roleOf('fm', 'MachineToMachine')]
  const [application, freeApplication] = [await applicationOf('Backend'), await applicationOf('Other')]
  const indicator = `https://api.test/${nonce}`
  const resource = await create('/resources', { name: 'Orders', indicator })
  const scope = await create(`/resources/${resource}/scopes`, { name: 'read:orders' })
  const freeScope = await create(`/resources/${resource}/scopes`, { name: 'write:orders' })
  await post(`/roles/${role}/scopes`, { scopeIds: [scope] })
  await post(`/roles/${role}/users`, { userIds: [user] })
  await post(`/roles/${machineRole}/applications`, { applicationIds: [application] })
  await post(`/users/${user}/personal-access-tokens`, { name: 'laptop' })
  await post(`/users/${user}/mfa-verifications`, { type: 'BackupCode' })
  const [factor] = await api.expect(200, 'GET', `/users/${user}/mfa-verifications`)

  const identities = JSON.stringify({ github: { userId: nonce } })
  await api.database.knex('users').where({ id: user }).update({ identities })

  const organization = await create('/organizations', { name: 'Acme' })
  const organizationScope = await create('/organization-scopes', { name: `read:${nonce}` })
  const freeOrganizationScope = await create('/organization-scopes', { name: `write:${nonce}` })
  const organizationRole = await create('/organization-roles', {
    name: `member ${nonce}`,
    organizationScopeIds: [organizationScope],
    resourceScopeIds: [scope],
  })
  const freeOrganizationRole = await create('/organization-roles', { name: `guest ${nonce}` })
  const machineOrganizationRole = await create('/organization-roles', { name: `m ${nonce}`, type: 'MachineToMachine' })
  const freeMachineOrganizationRole = await create('/organization-roles', {
    name: `fm ${nonce}`,
    type: 'MachineToMachine',
  })
  await post(`/organizations/${organization}/users`, { userIds: [user] })
  await post(`/organizations/${organization}/users/${user}/roles`, { organizationRoleIds: [organizationRole] })
  await post(`/organizations/${organization}/applications`, { applicationIds: [application] })
  await post(`/organizations/${organization}/applications/${application}/roles`, {
    organizationRoleIds: [machineOrganizationRole],
  })

  const jit = `/organizations/${organization}/jit`
  await post(`${jit}/email-domains`, { emailDomain: 'example.test' })
  await post(`${jit}/roles`, { organizationRoleIds: [organizationRole] })
  const ssoConfig = { clientId: 'client', clientSecret: 'secret' }
  const sso = await create('/sso-connectors', {
    ...{ providerName: 'GoogleWorkspace', connectorName: `sso ${nonce}`, config: ssoConfig },
  })
  await api.database
    .knex('user_sso_identities')
    .insert({ id: nonce.slice(0, 21), user_id: user, provider_id: sso, issuer: 'https://idp.test', subject: nonce })
  await post(`${jit}/sso-connectors`, { ssoConnectorIds: [sso] })
  const email = `link-${nonce}@example.test`
  const oneTimeToken = await post('/one-time-tokens', { email })
  const expiring = JSON.stringify({ passwordExpiration: { enabled: true, validPeriodDays: 30 } })
  await api.database
    .knex('settings')
    .insert({ name: signInExperience.name, value: expiring })
    .onConflict('name')
    .merge()

  const hook = await create('/hooks', { events: ['User.Created'], config: { url: 'https://192.88.98.1/hook' } })
  const entity = { entity_kind: 'user', entity_id: user, version: 1 }
  const [event] = await api.database.knex('outbox').where(entity).select('id', 'seq')
  await api.database.knex('outbox_pending').where({ seq: event.seq }).delete()
  const [delivery] = await api.database
    .knex('deliveries')
    .insert({
      hook_id: hook,
      event_id: event.id,
      type: 'User.Created',
      ...entity,
      state: 'dead',
      finished_at: new Date(),
    })
    .returning('id')
  const replay = await create(`/hooks/${hook}/replays`, { states: ['missing'] })
  const [log] = await api.expect(200, 'GET', '/logs?page_size=1')
  const session = `session ${nonce}`.slice(0, 21)
  await api.database.knex('impersonation_sessions').insert({
    id: session,
    subject_id: user,
    client_id: application,
    creator_id: application,
    scopes: [],
    context: {},
    token_id: nonce,
    expires_at: new Date(Date.now() + 3_600_000),
  })

  const request = `request ${nonce}`.slice(0, 21)
  const expires_at = new Date(Date.now() + 600_000)
  await api.database.knex('impersonation_requests').insert({
    ...{ id: request, user_id: user, creator_id: application, context: {}, number: '47', expires_at },
  })
  await api.database.knex('opaque_tokens').insert({
    ...{ digest: tokenDigest('opaque-token', nonce), user_id: freeUser, client_id: application, scope: 'openid' },
    expires_at,
  })

  const person = { user_id: user, amr: ['pwd'], acr: 'urn:surrogate:acr:basic', authenticated_at: new Date() }
  const interaction = JSON.stringify({ interactionEvent: 'SignIn', userId: user, verificationRecords: [] })
  const inAnHour = new Date(Date.now() + 3_600_000)
  const browser = `browser ${nonce}`.slice(0, 21)
  await api.database.knex('sessions').insert({
    ...person,
    id: browser,
    digest: Buffer.from(nonce),
    is_persistent: false,
    interaction,
    first_address: '::1',
    last_address: '::1',
    idle_ttl: 3_600,
    expires_at: inAnHour,
  })
  const grant = `ps_${nonce}`.slice(0, 21)
  await api.database.knex('authorizations').insert({
    ...person,
    id: grant,
    session_id: browser,
    client_id: application,
    scopes: ['openid'],
    resources: [],
    is_offline: true,
    interaction,
    expires_at: inAnHour,
  })

  const partner = await create('/applications', { name: 'Partner', type: 'SPA', isThirdParty: true })
  await post(`/applications/${partner}/user-consent-scopes`, { resourceScopes: [scope] })
  await api.database.knex('consents').insert({
    ...{ id: `consent ${nonce}`.slice(0, 21), user_id: user, client_id: partner, scopes: ['openid'] },
    ...{ organizations: [organization], expires_at: inAnHour },
  })

  const smsConfig = { apiKey: 'key', apiSecret: 'secret', brandName: 'Acme' }
  const connector = await create('/connectors', { connectorId: 'vonage-sms', config: smsConfig })
  // There is one of this kind.
  await api.database.knex('identity_providers').where({ target: 'github' }).delete()
  const social = await create('/connectors', { connectorId: 'github-universal', config: ssoConfig })

  const script = 'const getCustomJwtClaims = () => ({ plan: "gold" })'
  await api.call('PUT', '/configs/jwt-customizer/access-token', { script })

  return {
    ids: {
      '/users/{userId}': user,
      '/users/{userId}/roles/{roleId}': role,
      '/users/{userId}/personal-access-tokens/{name}': 'laptop',
      '/users/{userId}/mfa-verifications/{verificationId}': factor.id,
      '/users/{userId}/sessions/{sessionId}': browser,
      '/users/{userId}/grants/{grantId}': grant,
      '/users/{userId}/identities/{target}': 'github',
      '/resources/{id}': resource,
      '/resources/{resourceId}': resource,
      '/resources/{resourceId}/scopes/{scopeId}': scope,
      '/roles/{id}': role,
      '/roles/{id}/scopes/{scopeId}': scope,
      '/roles/{id}/users/{userId}': user,
      '/roles/{id}/applications/{applicationId}': application,
      '/applications/{id}': application,
      '/applications/{applicationId}': partner,
      '/applications/{applicationId}/user-consent-scopes/{scopeType}': 'resource-scopes',
      '/applications/{applicationId}/user-consent-scopes/{scopeType}/{scopeId}': scope,
      '/applications/{id}/users/{userId}': user,
      '/applications/{id}/users/{userId}/consent-organizations/{organizationId}': organization,
      ...Object.fromEntries(
        ['list', 'replace', 'add', 'remove'].map((what) => [
          `${what}ConsentOrganization${what === 'remove' ? '' : 's'} /applications/{id}`,
          partner,
        ]),
      ),
      '/applications/{id}/secrets/{name}': 'Default secret',
      '/applications/{id}/roles/{roleId}': machineRole,
      '/organizations/{id}': organization,
      '/organizations/{id}/users/{userId}': user,
      '/organizations/{id}/users/{userId}/roles/{organizationRoleId}': organizationRole,
      '/organizations/{id}/applications/{applicationId}': application,
      '/organizations/{id}/applications/{applicationId}/roles/{organizationRoleId}': machineOrganizationRole,
      '/organizations/{id}/jit/email-domains/{emailDomain}': 'example.test',
      '/organizations/{id}/jit/roles/{organizationRoleId}': organizationRole,
      '/organizations/{id}/jit/sso-connectors/{ssoConnectorId}': sso,
      '/sso-connectors/{id}': sso,
      '/users/{userId}/sso-identities/{ssoConnectorId}': sso,
      '/one-time-tokens/{id}': oneTimeToken.id,
      '/organization-roles/{id}': organizationRole,
      '/organization-roles/{id}/scopes/{organizationScopeId}': organizationScope,
      '/organization-roles/{id}/resource-scopes/{scopeId}': scope,
      '/organization-scopes/{id}': organizationScope,
      '/logs/{id}': log.id,
      '/configs/jwt-customizer/{tokenType}': 'access-token',
      '/configs/oidc/cookie-keys/{keyId}': 'unknown',
      '/configs/oidc/id-token-keys/{keyId}': 'unknown',
      '/connectors/{id}': connector,
      '/connectors/{factoryId}': 'vonage-sms',
      'createConnectorAuthorizationUri /connectors/{id}': social,
      '/impersonations/{id}': session,
      '/impersonation-requests/{id}': request,
      '/hooks/{id}': hook,
      '/hooks/{id}/deliveries/{deliveryId}': String(delivery.id),
      '/hooks/{id}/replays/{replayId}': replay,
      // The machine's role has no users: what a path names depends on the operation.
      'deleteRoleApplication /roles/{id}': machineRole,
      'addRoleApplications /roles/{id}': freeMachineRole,
      'addRoleUsers /roles/{id}': freeRole,
    },
    members: {
      ...Object.fromEntries(
        [
          'termsOfUseUrl',
          'privacyPolicyUrl',
          'supportWebsiteUrl',
          'unknownSessionRedirectUrl',
          'logoUrl',
          'darkLogoUrl',
          'favicon',
          'darkFavicon',
        ].map((link) => [link, 'https://acme.example/']),
      ),
      ...Object.fromEntries(['signInPages', 'customCss'].map((cleared) => [cleared, ''])),
      supportEmail: 'help@example.test',
      primaryColor: '#123456',
      darkPrimaryColor: '#abcdef',
      content: Buffer.from('GIF89a').toString('base64'),
      userId: user,
      actorId: freeUser,
      actorToken: nonce,
      clientId: application,
      userIds: [freeUser],
      applicationIds: [freeApplication],
      scopeIds: [freeScope],
      resourceScopeIds: [freeScope],
      roleIds: [freeRole],
      organizationScopeIds: [freeOrganizationScope],
      organizationRoleIds: [freeOrganizationRole],
      organizationRoleNames: [`guest ${nonce}`],
      'addApplicationRoles roleIds': [freeMachineRole],
      'replaceApplicationRoles roleIds': [freeMachineRole],
      'addOrganizationUsersRoles userIds': [user],
      'addOrganizationApplicationsRoles applicationIds': [application],
      'addOrganizationApplicationsRoles organizationRoleIds': [freeMachineOrganizationRole],
      'addOrganizationApplicationRoles organizationRoleIds': [freeMachineOrganizationRole],
      'addOrganizationApplicationRoles organizationRoleNames': [`fm ${nonce}`],
      'replaceOrganizationApplicationRoles organizationRoleIds': [freeMachineOrganizationRole],
      'replaceOrganizationApplicationRoles organizationRoleNames': [`fm ${nonce}`],
      'search q': 'Orders',
      email,
      token: oneTimeToken.token,
      status: 'revoked',
      emailDomain: 'other.test',
      emailDomains: ['other.test'],
      resource: indicator,
      scopes: ['read:orders'],
      'createPersonalAccessToken scopes': ['read:orders'],
      name: `a name of ${nonce}`,
      'createScope name': `name:${nonce}`,
      'updateScope name': `name:${nonce}`,
      'createOrganizationScope name': `name:${nonce}`,
      'updateOrganizationScope name': `name:${nonce}`,
      experience: {},
      application: {},
      organizationScopes: [freeOrganizationScope],
      resourceScopes: [freeScope],
      organizationResourceScopes: [freeScope],
      userScopes: ['email'],
      'replaceConsentOrganizations organizationIds': [organization],
      'addConsentOrganizations organizationIds': [organization],
      'createApplicationSecret name': 'Second',
      'deletePersonalAccessToken name': 'laptop',
      'createUserMfaVerification secret': 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ',
      currentName: 'laptop',
      username: `ada_${nonce.replaceAll('-', '_')}`,
      primaryEmail: `${nonce}@example.test`,
      primaryPhone: `1202${String(Number.parseInt(nonce.slice(0, 8), 16) % 10_000_000).padStart(7, '0')}`,
      indicator: `https://other.test/${nonce}`,
      events: ['User.Created'],
      event: 'User.Created',
      connectorId: 'vonage-sms',
      phone: '4915112345678',
      'createConnector config': smsConfig,
      'createSsoConnector providerName': 'GoogleWorkspace',
      'createSsoConnector config': ssoConfig,
      'updateSsoConnector config': ssoConfig,
      connectorName: `another ${nonce}`,
      domains: [`${nonce}.test`],
      redirectUri: 'https://app.test/linked',
      'updateConnector config': { ...smsConfig, brandName: 'Other' },
      'testConnector config': smsConfig,
      script,
      url: 'https://192.88.98.1/other',
      expiresAt: Date.now() + 86_400_000,
    },
  }
}
