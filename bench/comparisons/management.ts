import { hash, randomBytes } from 'node:crypto'
import type { Comparison, Contestant } from '../harness/comparison.ts'
import { watchDatabaseCpu } from '../harness/database-cpu-store.ts'
import { underTest } from '../harness/process.ts'
import { send, sendExpecting } from '../harness/send.ts'
import type { Server } from '../harness/stage.ts'
import { seeded, seedManagement } from '../targets/management-seed-store.ts'
import { startPostgres } from './issuer.ts'

/**
 * How long one caller waits for the lists and searches of the Management API in a large database: whole answers over
 * HTTP, the token verified, each with its page of 20 rows and its exact total.
 */
export const management: Comparison = {
  name: 'management',
  fixedConnections: 1,
  title: 'Management API with 1 000 000 users, 10 000 roles, 100 000 members in one organization',
  prepare: async (stage) => {
    const connection = await seedManagement(await startPostgres(stage))
    const cpu = await watchDatabaseCpu(connection)
    stage.onStop(cpu.close)
    const bootstrap = { id: 'bench', secret: randomBytes(32).toString('base64url') }
    const server = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), underTest, {
      connection,
      bootstrap,
    })
    const token = await managementToken(server, bootstrap)
    const contestants = lists.map((list) => contestantOf(list, server, token))
    return { contestants: contestants.map((one) => ({ ...one, databaseMicros: cpu.micros })), ratios: [] }
  },
}

type List = {
  name: string
  /** One or several, which take turns. */
  paths: string[]
  /** Of the first path; absent where it depends on what else is in the database. */
  total?: number
  atMostP95Ms: number
}

const { users, roles, members, organizations } = seeded
const page = 25
const search = 400

const text = (value: string) => encodeURIComponent(value)
const some = (path: (number: number) => string) =>
  Array.from({ length: 50 }, (_, index) => path(20_011 * index + 12_345))
const heldBy = (users / roles) * 2

const lists: List[] = [
  { name: 'users', paths: ['/users'], total: users, atMostP95Ms: page },
  { name: 'users, page 1 000', paths: ['/users?page=1000'], total: users, atMostP95Ms: page },
  { name: 'users, the last page', paths: [`/users?page=${users / 20}`], total: users, atMostP95Ms: page },
  {
    name: 'users, in the middle, after a row',
    paths: [`/users?page=${users / 40 + 1}&after=${hash('md5', String(users / 2)).slice(0, 12)}`],
    total: users,
    atMostP95Ms: page,
  },
  { name: 'users without a role', paths: ['/users?excludeRoleId=role-1'], total: users - heldBy, atMostP95Ms: page },
  {
    name: 'users outside the organization',
    paths: ['/users?excludeOrganizationId=large'],
    total: users - members,
    atMostP95Ms: page,
  },
  { name: 'users who have a role', paths: ['/roles/role-1/users'], total: heldBy, atMostP95Ms: page },
  { name: 'roles, with who holds them', paths: ['/roles?page=1'], atMostP95Ms: page },
  { name: 'roles, page 400', paths: ['/roles?page=400'], atMostP95Ms: page },
  { name: 'members', paths: ['/organizations/large/users'], total: members, atMostP95Ms: page },
  { name: 'members, the last page', paths: [`/organizations/large/users?page=${members / 20}`], atMostP95Ms: page },
  { name: 'organizations', paths: ['/organizations'], total: organizations, atMostP95Ms: page },
  { name: 'applications', paths: ['/applications?page=1'], atMostP95Ms: page },
  { name: 'audit trail of a user', paths: some((n) => `/logs?userId=${n}`), total: 0, atMostP95Ms: page },
  { name: 'audit trail, count capped', paths: ['/logs?enableCap=true'], total: 10_000, atMostP95Ms: page },
  { name: 'search: a part of a name', paths: some((n) => `/users?search=${text(`%User ${n}%`)}`), atMostP95Ms: search },
  {
    name: 'search: an address',
    paths: some((n) => `/users?search.primaryEmail=user.${n}@example.test&mode=exact`),
    total: 1,
    atMostP95Ms: search,
  },
  {
    name: 'search: a part of an address',
    paths: some((n) => `/users?search=${text(`%user.${n}@example.test%`)}`),
    total: 1,
    atMostP95Ms: search,
  },
  { name: 'search: three digits anywhere', paths: [`/users?search=${text('%123%')}`], atMostP95Ms: search },
  { name: 'search: two letters anywhere', paths: [`/users?search=${text('%ab%')}`], atMostP95Ms: search },
  { name: 'search: finds nobody', paths: [`/users?search=${text('%zzqq%')}`], total: 0, atMostP95Ms: search },
  { name: 'search: finds everybody', paths: [`/users?search=${text('%User%')}`], total: users, atMostP95Ms: search },
  {
    name: 'search: finds everybody, count capped',
    paths: [`/users?search=${text('%User%')}&enableCap=true`],
    total: 10_000,
    atMostP95Ms: search,
  },
  { name: 'search among members', paths: some((n) => `/organizations/large/users?q=User%20${n}`), atMostP95Ms: search },
  {
    name: 'search for a role',
    paths: some((n) => `/roles?page=1&search=${text(`%Role ${n % 1000}%`)}`),
    atMostP95Ms: search,
  },
]

const contestantOf = ({ name, paths, total, atMostP95Ms }: List, server: Server, token: string): Contestant => {
  const requests = paths.map((path) => get(`/api${path}`, server, token))
  return {
    name,
    server,
    atMostP95Ms,
    requests: () => requests,
    expected: { status: 200, bodyIncludes: '[' },
    preflight: async () => {
      await sendExpecting(server.port, get('/api/users', server, `${token}x`), 401)
      const { status, head } = await send(server.port, requests[0]!)
      const told = Number(/\r\ntotal-number: *(\d+)/i.exec(head)?.[1])
      if (status !== 200 || (total !== undefined && told !== total)) {
        throw new Error(`${name}: expected a list of ${total}, got ${status} and ${told}`)
      }
    },
  }
}

const get = (path: string, { port }: Server, token: string): string =>
  [`GET ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`, `authorization: Bearer ${token}`, '', ''].join('\r\n')

export const managementToken = async (
  server: Server,
  { id, secret }: { id: string; secret: string },
): Promise<string> => {
  const origin = `http://127.0.0.1:${server.port}`
  const metadata = await (await fetch(`${origin}/oidc/.well-known/openid-configuration`)).json()
  const { issuer } = metadata as { issuer: string }
  const answer = await fetch(`${origin}/oidc/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      resource: issuer.replace(/oidc$/, 'api'),
      scope: 'all',
    }),
  })
  if (!answer.ok) throw new Error(`no token for the Management API: ${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { access_token: string }).access_token
}
