import type { ConsoleWithRelay } from './console-with-relay.ts'
import { until } from './until.ts'
import { startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts'

/** What a small shop would have in its console; names for pictures. */
export interface ConsoleExample {
  ids: Record<'user' | 'role' | 'resource' | 'organization' | 'application' | 'answering' | 'failing', string>
  receiver: WebhookReceiver
  close(): Promise<void>
}

const people = [
  ...[
    ['ada', 'Ada Lovelace'],
    ['grace', 'Grace Hopper'],
    ['hedy', 'Hedy Lamarr'],
    ['joan', 'Joan Clarke'],
  ],
  ...[
    ['katherine', 'Katherine Johnson'],
    ['lise', 'Lise Meitner'],
    ['mary', 'Mary Somerville'],
  ],
] as const

/** One receiver answers, the other one is down for maintenance: three events about a user wait for it. */
export const createConsoleExample = async (app: ConsoleWithRelay): Promise<ConsoleExample> => {
  await app.relay({ retrySchedule: [300_000] })
  const receiver = await startWebhookReceiver(({ url, body }, response) => {
    const isUp = url.includes('crm') && body['id'] !== undefined
    response.writeHead(isUp ? 204 : 503, { 'content-type': 'text/plain' }).end(isUp ? '' : 'down for maintenance')
  })
  const create = async (path: string, body: object) => {
    const answer = await app.home.issuer.api('POST', path, body)
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const hookOf = (name: string, events: string[]) =>
    create('/hooks', { name, events, config: { url: receiver.url.replace('webhooks', name.toLowerCase()) } })
  const resource = await create('/resources', { name: 'Orders', indicator: 'https://orders.example.com' })
  await app.home.issuer.api('PATCH', `/resources/${resource.id}/is-default`, { isDefault: true })
  const scopes = []
  for (const [name, description] of [
    ['read:orders', 'See orders and what became of them'],
    ['write:orders', 'Place and change orders'],
    ['refund:orders', 'Pay money back'],
  ])
    scopes.push(await create(`/resources/${resource.id}/scopes`, { name, description }))
  await create('/resources', { name: 'Stock', indicator: 'https://stock.example.com' })
  const role = await create('/roles', {
    ...{ name: 'Customer care', description: 'Looks after orders' },
    scopeIds: scopes.slice(0, 2).map(({ id }) => id),
  })
  await create('/roles', { name: 'Accountant', description: 'Pays money back', scopeIds: [scopes[2].id] })
  const application = await create('/applications', {
    ...{ name: 'Nightly export', type: 'MachineToMachine', description: 'Copies orders to the warehouse' },
  })
  await create('/applications', {
    ...{ name: 'Shop', type: 'SPA', description: 'Where customers buy' },
    oidcClientMetadata: { redirectUris: ['https://shop.example.com/callback'], postLogoutRedirectUris: [] },
  })
  const organization = await create('/organizations', { name: 'Analytical Engines Ltd', description: 'A customer' })
  const answering = await hookOf('CRM', ['User.*'])
  const failing = await hookOf('Warehouse', ['User.Data.Updated', 'Organization.Membership.Updated'])
  const users = []
  for (const [username, name] of people)
    users.push(await create('/users', { username, name, primaryEmail: `${username}@example.com` }))
  await create(`/users/${users[0].id}/roles`, { roleIds: [role.id] })
  await create(`/organizations/${organization.id}/users`, { userIds: [users[0].id, users[1].id] })
  for (const [place, title] of ['Countess', 'Rear Admiral', 'Actress'].entries())
    for (const avatar of ['1', '2', '3'].slice(place))
      await app.home.issuer.api('PATCH', `/users/${users[place].id}`, {
        ...{ avatar: `https://example.com/${avatar}.png`, customData: { title } },
      })
  await receiver.until(
    (received) =>
      received.filter(({ url }) => url.includes('crm')).length >= 13 &&
      received.filter(({ url }) => url.includes('warehouse')).length >= 4,
  )
  await until(async () => {
    const { headers } = await app.home.issuer.api(
      'GET',
      `/hooks/${answering.id}/deliveries?state=succeeded&page_size=1`,
    )
    if (Number(headers.get('total-number')) < 13) throw new Error('Not everything is delivered yet.')
  })
  const ids = { user: users[0].id, role: role.id, resource: resource.id, organization: organization.id }
  return {
    ids: { ...ids, application: application.id, answering: answering.id, failing: failing.id },
    receiver,
    close: receiver.close,
  }
}
