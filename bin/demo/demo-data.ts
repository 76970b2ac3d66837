import { z } from 'zod'
import { randomAlphanumerics } from '../../platform/ids.ts'
import type { DemoData, DemoFile } from './demo-file.ts'
import { createManagementClient, type ManagementClient } from './management-client.ts'

/**
 * What the demo consists of, made through the Management API with the bootstrap application, as an integrator would:
 * two APIs with permissions, three people with roles, four applications, a webhook to the demo API, and settings by
 * which anybody can register with a mail address.
 */
export const createDemoData = async (options: {
  issuerUrl: string
  apiUrl: string
  webUrl: string
  bootstrap: { clientId: string; clientSecret: string }
}): Promise<DemoData> => {
  const api = await createManagementClient({ issuerUrl: options.issuerUrl, ...options.bootstrap })
  await removeLeftovers(api)
  await api.patch('/sign-in-exp', signInSettings)

  const orders = await createResource(api, { name: names.orders, indicator: ordersResource }, [
    { name: 'read:orders', description: 'See orders' },
    { name: 'write:orders', description: 'Place and change orders' },
  ])
  const clock = await createResource(api, { name: names.clock, indicator: clockResource, accessTokenTtl: 1 }, [
    { name: 'read:clock', description: 'See the time, with tokens that live one second' },
  ])
  const management = await managementScopes(api, `${options.issuerUrl}/api`)

  const customerRole = await createRole(api, {
    name: names.customerRole,
    description: 'Sees and places orders',
    type: 'User',
    scopeIds: [...orders, ...clock],
    // Whoever registers sees orders too.
    isDefault: true,
  })
  const agentRole = await createRole(api, {
    name: names.agentRole,
    description: 'Sees orders',
    type: 'User',
    scopeIds: orders.slice(0, 1),
  })
  const customer = await createUser(
    api,
    { username: 'demo_customer', name: 'Carla Customer', primaryEmail: 'customer@demo.test' },
    customerRole,
  )
  const agent = await createUser(
    api,
    { username: 'demo_agent', name: 'Sam Support', primaryEmail: 'agent@demo.test' },
    agentRole,
  )

  const privateCustomer = await createUser(
    api,
    { username: 'demo_private', name: 'Petra Private', primaryEmail: 'private@demo.test' },
    customerRole,
  )
  // The demo's rules see it: she is asked before anybody acts as her.
  await api.patch(`/users/${privateCustomer.id}/custom-data`, { customData: { askFirst: true } })

  const integratorRole = await createRole(api, {
    name: names.integratorRole,
    description: 'Obtains subject tokens and changes users',
    type: 'MachineToMachine',
    scopeIds: [management('impersonation'), management('users')],
  })
  const gatewayRole = await createRole(api, {
    name: names.gatewayRole,
    description: 'Reads the revocation feed',
    type: 'MachineToMachine',
    scopeIds: [management('revocations')],
  })
  const integrator = await createApplication(api, { name: names.integrator, type: 'MachineToMachine' }, integratorRole)
  const gateway = await createApplication(api, { name: names.gateway, type: 'MachineToMachine' }, gatewayRole)
  const application = await createApplication(api, {
    name: names.application,
    type: 'Traditional',
    customClientMetadata: { allowTokenExchange: true },
  })
  const webApplication = await createApplication(api, {
    name: names.webApplication,
    type: 'Traditional',
    oidcClientMetadata: {
      redirectUris: [`${options.webUrl}/callback`],
      postLogoutRedirectUris: [`${options.webUrl}/`],
    },
    // Refresh tokens end with the session at the issuer; with offline_access they would not.
    customClientMetadata: { alwaysIssueRefreshToken: true, allowTokenExchange: true },
  })

  const webhook = hookRow.parse(
    await api.post('/hooks', {
      name: names.webhook,
      events: ['User.Created', 'User.Data.Updated', 'User.SuspensionStatus.Updated', 'Role.Scopes.Updated'],
      config: { url: `${options.apiUrl}/webhooks` },
    }),
  )
  return {
    edition,
    ordersResource,
    clockResource,
    customer,
    privateCustomer,
    agent,
    agentRole: names.agentRole,
    integrator,
    gateway,
    application,
    webApplication,
    webhook: { id: webhook.id, secret: webhook.webhookSecret },
  }
}

/** The database may have been replaced since the file was written. */
export const isDemoDataThere = async ({ issuerUrl, bootstrap, data }: DemoFile): Promise<boolean> => {
  if (data?.edition !== edition) return false
  const api = await createManagementClient({ issuerUrl, ...bootstrap })
  try {
    await api.get(`/users/${data.customer.id}`)
    await api.get(`/hooks/${data.webhook.id}`)
    return true
  } catch {
    return false
  }
}

const ordersResource = 'https://api.demo.test/orders'
const clockResource = 'https://api.demo.test/clock'

/** Counts up when the demo needs what it did not make before. */
const edition = 3

/** New people prove a mail address by a code, and are asked whether they want a second factor. */
const signInSettings = {
  signUp: { identifiers: ['email'], password: true, verify: true },
  signIn: {
    methods: [
      { identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: true },
      { identifier: 'username', password: true, verificationCode: false, isPasswordPrimary: true },
    ],
  },
  mfa: { factors: ['WebAuthn', 'Totp', 'BackupCode'], policy: 'PromptAtSignInAndSignUp' },
}

/** By these the demo finds its own again. */
const names = {
  orders: 'Demo orders API',
  clock: 'Demo clock API',
  customerRole: 'Demo customer',
  agentRole: 'Demo support agent',
  integratorRole: 'Demo integrator backend',
  gatewayRole: 'Demo gateway',
  integrator: 'Demo integrator backend',
  application: 'Demo support console',
  webApplication: 'Demo shop',
  gateway: 'Demo gateway',
  webhook: 'Demo webhook',
}

const idRow = z.object({ id: z.string() })
const hookRow = idRow.extend({ webhookSecret: z.string() })
const namedRows = z.array(idRow.extend({ name: z.string().nullish(), username: z.string().nullish() }))

/**
 * A start that was killed half-way, or other addresses than last time: the demo is made anew, and nothing else is
 * touched.
 */
const removeLeftovers = async (api: ManagementClient) => {
  const ours = new Set<string>([...Object.values(names), 'demo_customer', 'demo_private', 'demo_agent'])
  for (const collection of [
    '/hooks',
    '/applications',
    '/users?search=demo_%25&page_size=100',
    '/roles?page_size=100',
    '/resources',
  ]) {
    const [path] = collection.split('?')
    for (const row of namedRows.parse(await api.get(collection))) {
      if (ours.has(row.username ?? row.name ?? '')) await api.delete(`${path}/${row.id}`)
    }
  }
}

/** The ids of the resource's scopes, in the order given. */
const createResource = async (
  api: ManagementClient,
  resource: { name: string; indicator: string; accessTokenTtl?: number },
  scopes: readonly { name: string; description: string }[],
) => {
  const { id } = idRow.parse(await api.post('/resources', resource))
  const ids: string[] = []
  for (const scope of scopes) ids.push(idRow.parse(await api.post(`/resources/${id}/scopes`, scope)).id)
  return ids
}

const managementScopes = async (api: ManagementClient, indicator: string) => {
  const rows = z
    .array(z.object({ indicator: z.string(), scopes: z.array(idRow.extend({ name: z.string() })) }))
    .parse(await api.get('/resources?includeScopes=true'))
  const scopes = rows.find((row) => row.indicator === indicator)?.scopes ?? []
  return (name: string): string => {
    const scope = scopes.find((row) => row.name === name)
    if (scope === undefined) throw new Error(`The Management API resource has no scope "${name}".`)
    return scope.id
  }
}

const createRole = async (
  api: ManagementClient,
  role: {
    name: string
    description: string
    type: 'User' | 'MachineToMachine'
    scopeIds: string[]
    isDefault?: boolean
  },
) => idRow.parse(await api.post('/roles', role)).id

const createUser = async (
  api: ManagementClient,
  user: { username: string; name: string; primaryEmail: string },
  roleId: string,
) => {
  const password = randomAlphanumerics(20)
  const { id } = idRow.parse(await api.post('/users', { ...user, password }))
  await api.post(`/users/${id}/roles`, { roleIds: [roleId] })
  return { id, username: user.username, password }
}

const createApplication = async (
  api: ManagementClient,
  application: {
    name: string
    type: string
    oidcClientMetadata?: Record<string, unknown>
    customClientMetadata?: Record<string, unknown>
  },
  roleId?: string,
) => {
  const { id } = idRow.parse(await api.post('/applications', application))
  const secret = z.object({ value: z.string() })
  const { value } = secret.parse(await api.post(`/applications/${id}/secrets`, { name: 'Demo' }))
  if (roleId !== undefined) await api.post(`/applications/${id}/roles`, { roleIds: [roleId] })
  return { clientId: id, clientSecret: value }
}
