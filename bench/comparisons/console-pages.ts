import { operations } from '../../web/console/generated/operations.ts'
import { addDelivery } from '../targets/console-seed-store.ts'
import type { ConsoleWorld } from './console-world.ts'

/** A page of the console that can be gone to. */
export interface VisitedPage {
  /** Its title and its path as the table of pages has them. */
  name: string
  /** Below `/console`, with the id of something that is there. Undefined: nobody has said what would be. */
  address: string | undefined
}

/** All that the console's own table of pages has but the first, so that a page that is added is here as well. */
export const pagesToVisit = async (world: ConsoleWorld): Promise<VisitedPage[]> => {
  // Not by its name alone, by which the compiler would follow it to all that is for browsers.
  const table = new URL('../../web/console/pages.ts', import.meta.url).href
  const { pages } = (await import(table)) as { pages: readonly Row[] }
  const visited: VisitedPage[] = []
  for (const page of pages.filter(({ path }) => path !== '/'))
    visited.push({ name: `${page.title}, \`${page.path}\``, address: await addressOf(world, page) })
  return visited
}

interface Row {
  path: string
  title: string
  operation?: keyof typeof operations
}

const addressOf = async (world: ConsoleWorld, page: Row): Promise<string | undefined> => {
  const example = examples[page.path]
  if (typeof example === 'string') return example
  if (example) return example(world)
  return page.path.includes(':') ? firstOf(world, page) : page.path
}

/** The page of a record, where the path of the operation that reads it is that of a list and an id. */
const firstOf = async ({ api }: ConsoleWorld, { path, operation }: Row): Promise<string | undefined> => {
  const list = operation && /^(\/[^:]+)\/:\w+$/.exec(operations[operation].path)?.[1]
  const [, before] = /^(\/[^:]+\/):\w+(?:\/:\w+\?)?$/.exec(path) ?? []
  if (!list || !before) return undefined
  const [first] = (await api('GET', `${list}?page=1&page_size=1`)) as Made[]
  return first && before + first.id
}

type Made = { id: string }

const made = async ({ api }: ConsoleWorld, path: string, body: object): Promise<string> =>
  ((await api('POST', path, body)) as Made).id

const newHook = (world: ConsoleWorld): Promise<string> =>
  made(world, '/hooks', { name: 'Orders', events: ['User.Created'], config: { url: 'https://9.9.9.9/events' } })

const client = { clientId: 'console', clientSecret: 'secret of the console' }
const script = 'const getCustomJwtClaims = async ({ token }) => ({ plan: token.sub })'

/** Of pages whose address nothing else tells, and of those of what a large database has none of. */
const examples: Readonly<Record<string, string | ((world: ConsoleWorld) => Promise<string>)>> = {
  '/organization-template/:tab': '/organization-template/permissions',
  '/organization-template/permissions/:id': async (world) =>
    `/organization-template/permissions/${await made(world, '/organization-scopes', { name: 'read:orders' })}`,
  '/hooks/:id/deliveries/:deliveryId': async (world) => {
    const hook = await newHook(world)
    return `/hooks/${hook}/deliveries/${await addDelivery(world.connection, hook)}`
  },
  '/sign-in-settings/:tab': '/sign-in-settings/security',
  '/messages/new/:type': '/messages/new/Email',
  '/messages/:id/:tab?': async (world) => {
    const mail = { host: '9.9.9.9', port: 2525, fromEmail: 'no-reply@example.test', auth: { user: 'u', pass: 'p' } }
    const connector = { connectorId: 'simple-mail-transfer-protocol', config: { ...mail, templates: [] } }
    return `/messages/${await made(world, '/connectors', connector)}`
  },
  '/identity-providers/social/:id': async (world) =>
    `/identity-providers/social/${await made(world, '/connectors', { connectorId: 'github-universal', config: client })}`,
  '/identity-providers/company/:id': async (world) => {
    const company = {
      providerName: 'GoogleWorkspace',
      connectorName: 'Acme',
      domains: ['acme.example'],
      config: client,
    }
    return `/identity-providers/company/${await made(world, '/sso-connectors', company)}`
  },
  '/developer/:tab': '/developer/tokens',
  '/events/types/:type': '/events/types/User.Created',
  '/events/:tab': '/events/feed',
  '/claims/:kind': async ({ api }) => {
    await api('PUT', '/configs/jwt-customizer/access-token', { script })
    return '/claims/access-token'
  },
}
