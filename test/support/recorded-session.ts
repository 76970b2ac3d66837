import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { decodeJwt } from 'jose'
import { stringify } from 'yaml'
import { type ConsoleRoleName, consoleRoles } from '../../issuer/base/console-roles.ts'
import { shippedPolicies } from '../../policies/policy-set.ts'
import type { Person } from './code-flow.ts'
import { createTestDatabase } from './database.ts'
import { freePort } from './free-port.ts'
import { startUpstream } from './gateway.ts'
import { type Answer, accessTokenType, basic, formOf, request, tokenExchange } from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'
import { createProcessFlow } from './issuer-process.ts'
import { startProcess, type TestProcess } from './process.ts'
import { databaseUrl, testClient, testKey } from './surrogate-process.ts'
import { until } from './until.ts'
import { startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))
const orders = 'https://api.test/orders'

/**
 * Issuer, relay and gateways as operators run them, an API behind the gateways that changes users because of its
 * requests, a hook that hears of it, and support that acts for a customer.
 */
export interface RecordedPlace {
  baseUrl: string
  /** By the names that the console has for them. */
  gateways: Readonly<Record<string, { url: string; child: TestProcess }>>
  receiver: WebhookReceiver
  customer: { id: string; name: string }
  api(method: string, path: string, body?: unknown): Promise<Answer>
  createMember(role: ConsoleRoleName): Promise<Person>
  /** What the application of support does with a subject token, for somebody who has signed in to it. */
  exchange(subjectToken: string, actor: Person): Promise<{ sid: string; token: string }>
  /** A request at a gateway, as whoever acts. */
  ask(gateway: string, token: string, method: string, path: string): Promise<number>
  close(): Promise<void>
}

/** `together`: `surrogate start`, with one gateway; else an issuer, a relay and two gateways. */
export const startRecordedPlace = async ({
  together,
  policies = { path: shippedPolicies },
}: {
  together: boolean
  /** Of the gateways, where the console may save them. */
  policies?: { path: string; shadow?: string }
}): Promise<RecordedPlace> => {
  const test = await createTestDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-recorded-'))
  const upstream = await startUpstream()
  const receiver = await startWebhookReceiver()
  const port = await freePort()
  const baseUrl = `http://localhost:${port}`
  const audience = `${baseUrl}/inspection`
  const children: TestProcess[] = []

  const launch = async (name: string, args: readonly string[], own: Record<string, string>) => {
    const adminPort = await freePort()
    const env = {
      DATABASE_URL: databaseUrl(test.connection),
      KEY_ENCRYPTION_KEY: testKey,
      BOOTSTRAP_CLIENT_ID: testClient.id,
      BOOTSTRAP_CLIENT_SECRET: testClient.secret,
      WEBHOOK_ALLOW_HTTP: 'true',
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      ADMIN_PORT: String(adminPort),
      ...own,
    }
    const child = startProcess(process.execPath, [surrogate, ...args], { cwd: folder, env })
    children.push(child)
    await until(async () => {
      const answer = await fetch(`http://127.0.0.1:${adminPort}/readyz`)
      if (!answer.ok) throw new Error(`${name} is not ready: ${child.output()}`)
    }, 60_000)
    return child
  }
  const gatewayFile = async (name: string, inspectionPort: number, adminPort?: number) => {
    const file = join(folder, `${name}.yaml`)
    const route = { audience: [orders], scopes: ['write:orders'], upstream: 'orders' }
    const config = {
      version: 1,
      listen: { port: 0 },
      ...(adminPort !== undefined && { admin: { port: adminPort } }),
      inspection: { port: inspectionPort, audience, savePolicies: policies.path !== shippedPolicies },
      policies,
      issuers: [
        { issuer: `${baseUrl}/oidc`, client: { ...testClient }, clockSkew: '5s', revocations: { mode: 'feed' } },
      ],
      upstreams: { orders: { url: upstream.url } },
      routes: [
        { ...route, id: 'orders', path: '/orders/**' },
        { ...route, id: 'refunds', path: '/refunds/**', impersonation: 'deny' },
      ],
      allowInsecure: ['http-issuer', 'http-upstream'],
    }
    await writeFile(file, stringify(config))
    return file
  }
  const urlOf = async (child: TestProcess): Promise<string> =>
    (await child.waitFor(/"url":"(https?:[^"]+)"[^\n]*the gateway listens/))[1]!
  const issuerEnv = { PORT: String(port), BASE_URL: baseUrl, POLICY_PATH: shippedPolicies }

  const startTogether = async () => {
    const env = { ...issuerEnv, GATEWAY_CONFIG: await gatewayFile('gateway', 0) }
    const child = await launch('start', ['start'], env)
    return { gateway: { child, url: await urlOf(child) } }
  }
  const startApart = async () => {
    const ports = await Promise.all([freePort(), freePort()])
    const named = ports.map((own, index) => [`edge-${index + 1}`, own] as const)
    const CONSOLE_GATEWAYS = named.map(([name, own]) => `${name}=http://127.0.0.1:${own}`).join(',')
    await launch('issuer', ['issuer'], { ...issuerEnv, CONSOLE_GATEWAYS })
    await launch('relay', ['relay'], {})
    const started = named.map(async ([name, own]) => {
      const child = startProcess(
        process.execPath,
        [surrogate, 'gateway', '--config', await gatewayFile(name, own, await freePort())],
        { cwd: folder },
      )
      children.push(child)
      return [name, { child, url: await urlOf(child) }] as const
    })
    return Object.fromEntries(await Promise.all(started))
  }

  const close = async () => {
    for (const child of children) {
      child.signalGroup('SIGKILL')
      await child.exited
    }
    await receiver.close()
    await upstream.close()
    await test.close()
    await rm(folder, { recursive: true, force: true })
  }

  try {
    const gateways: RecordedPlace['gateways'] = await (together ? startTogether() : startApart())
    const people = await arrange(baseUrl, receiver)
    // The API renames whoever it is asked as, and says because of which session.
    upstream.answer = async (_incoming, response, { method, headers }) => {
      if (method === 'POST') {
        const { 'x-auth-sub': sub = '', 'x-auth-sid': sid = '' } = headers
        const changed = await people.changeAs(sub, sid)
        return void response.writeHead(changed.status).end()
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    }
    return {
      ...{ baseUrl, gateways, receiver, close, ...people },
      async ask(gateway, token, method, path) {
        const headers = { authorization: `Bearer ${token}` }
        const answer = await fetch(gateways[gateway]!.url + path, { method, headers })
        await answer.arrayBuffer()
        return answer.status
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** A customer, the application of support, the API with its own credentials, and the hook. */
const arrange = async (baseUrl: string, receiver: WebhookReceiver) => {
  const management = `${baseUrl}/api`
  const token = async (client: TestApplication, form: Record<string, string>): Promise<Answer> =>
    request(`${baseUrl}/oidc/token`, {
      method: 'POST',
      headers: { authorization: basic(client) },
      body: formOf(form),
    })
  const call = async (
    client: typeof testClient,
    scope: string,
    method: string,
    path: string,
    more: RequestInit = {},
  ) => {
    const asked = await token(client, { grant_type: 'client_credentials', resource: management, scope })
    const headers = { authorization: `Bearer ${asked.body.access_token}`, 'content-type': 'application/json' }
    return request(management + path, { method, ...more, headers: { ...headers, ...(more.headers as object) } })
  }
  const api = (method: string, path: string, body?: unknown) =>
    call(testClient, 'all', method, path, body === undefined ? {} : { body: JSON.stringify(body) })
  const make = async (path: string, body: object) => {
    const answer = await api('POST', path, body)
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  const resource = await make('/resources', { name: 'Orders', indicator: orders })
  const scope = await make(`/resources/${resource.id}/scopes`, { name: 'write:orders' })
  const { body: resources } = await api('GET', '/resources?includeScopes=true')
  const own = resources.find(({ indicator }: { indicator: string }) => indicator === management)
  const users = own.scopes.find(({ name }: { name: string }) => name === 'users')
  const role = (name: string, type: string, scopeIds: string[]) =>
    make('/roles', { name, description: name, type, scopeIds })
  const customers = await role('Customer', 'User', [scope.id])
  const machines = await role('Orders API', 'MachineToMachine', [scope.id, users.id])
  const name = 'Ada Customer'
  const customer = { id: (await make('/users', { name, username: 'ada' })).id as string, name }
  await make(`/users/${customer.id}/roles`, { roleIds: [customers.id] })
  const flow = createProcessFlow([baseUrl])
  const desk = await flow.createClient({ type: 'Traditional' })
  await api('PATCH', `/applications/${desk.id}`, { name: 'Support desk' })
  const backend = await make('/applications', { name: 'Orders API', type: 'MachineToMachine' })
  await make(`/applications/${backend.id}/roles`, { roleIds: [machines.id] })
  await make('/hooks', { name: 'Bookkeeping', events: ['User.Data.Updated'], config: { url: receiver.url } })

  let last = 0
  return {
    api,
    customer,
    async createMember(roleName: ConsoleRoleName): Promise<Person> {
      const person = { username: `${roleName}${++last}`, password: `a good password ${last}` }
      const { id } = await make('/users', { ...person, name: `Sam ${roleName}` })
      await make(`/users/${id}/roles`, { roleIds: [consoleRoles[roleName].id] })
      return { ...person, id }
    },
    async exchange(subjectToken: string, actor: Person) {
      const signedIn = await flow.redeem(desk, await flow.signIn(flow.browser(), desk, actor))
      const answer = await token(desk, {
        ...{ grant_type: tokenExchange, client_id: desk.id, resource: orders, scope: 'write:orders' },
        ...{ subject_token: subjectToken, subject_token_type: accessTokenType },
        ...{ actor_token: signedIn.body.access_token, actor_token_type: accessTokenType },
      })
      if (answer.status !== 200) throw new Error(`no token: ${answer.status} ${JSON.stringify(answer.body)}`)
      return { token: answer.body.access_token as string, sid: String(decodeJwt(answer.body.access_token)['sid']) }
    },
    changeAs: (sub: string, sid: string) =>
      call(backend, 'users', 'PATCH', `/users/${sub}`, {
        headers: { 'surrogate-session': sid },
        body: JSON.stringify({ customData: { lastOrder: sid } }),
      }),
  }
}
