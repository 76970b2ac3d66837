import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createLogger, silentLogger } from '../../../platform/logger.ts'
import { connectNats, type NatsOptions } from '../../../platform/nats/nats.ts'
import { type NatsServers, natsUrl } from '../../../platform/nats/nats-url.ts'
import { freePort } from '../../support/free-port.ts'
import { natsMissing, natsServers, startTestNats } from '../../support/nats.ts'
import { natsAccounts } from '../../support/nats-accounts.ts'
import { runProcess } from '../../support/process.ts'

const parse = (value: string) => {
  const result = natsUrl().safeParse(value)
  return result.success ? result.data : result.error.issues[0]!.message
}
const serversOf = (value: string) => parse(value) as NatsServers

describe('NATS_URL', () => {
  test('names servers, with credentials or without', () => {
    expect(parse('nats://nats.example.com')).toEqual({
      addresses: ['nats.example.com:4222'],
      tls: false,
      credentials: {},
    })
    const both = serversOf('tls://ada:p%40ss@one:5222, tls://two')
    expect(both).toMatchObject({ addresses: ['one:5222', 'two:4222'], tls: true })
    expect([both.credentials.user, both.credentials.password?.reveal()]).toEqual(['ada', 'p@ss'])
    expect(serversOf('nats://s3cret@[::1]:4223')).toMatchObject({ addresses: ['[::1]:4223'] })
    expect(serversOf('nats://s3cret@one').credentials.token?.reveal()).toBe('s3cret')
  })

  test.each([
    ['localhost:4222', /must start with nats:|must be a URL/],
    ['http://one', /must start with nats:/],
    ['nats://', /must be a URL|name a host/],
    ['nats://one/path', /must end after the port/],
    ['nats://one?x=1', /must end after the port/],
    ['nats://one,tls://two', /the same scheme/],
    ['nats://ada:one@one,nats://ada:two@two', /the same credentials/],
    ['nats://%ff@one', /percent-encoded/],
  ])('%s is refused', (value, reason) => {
    expect(parse(value)).toMatch(reason)
  })

  test('credentials are repeated neither by a refusal nor by a logged setting', () => {
    expect(parse('nats://ada:s3cret@one/path')).not.toMatch(/s3cret/)
    expect(JSON.stringify(parse('nats://ada:s3cret@one'))).not.toMatch(/s3cret/)
  })
})

describe.skipIf(natsMissing() !== undefined)('a connection to NATS', () => {
  const start = async (options: Parameters<typeof startTestNats>[0] = {}) => {
    const nats = await startTestNats({ jetstream: false, ...options })
    onTestFinished(nats.close)
    return nats
  }
  const open = async (options: Partial<NatsOptions> & Pick<NatsOptions, 'servers'>) => {
    const link = await connectNats({ name: 'test', logger: silentLogger, patienceMs: 20_000, ...options })
    onTestFinished(link.close)
    return link
  }
  const folder = async () => {
    const path = await mkdtemp(join(tmpdir(), 'surrogate-nats-test-'))
    onTestFinished(() => rm(path, { recursive: true, force: true }))
    return path
  }

  test('logs in with user and password; a wrong one is tried on until it is right', async () => {
    const nats = await start({ config: 'authorization { user: ada, password: "p@ss" }' })
    const url = (password: string) => serversOf(`nats://ada:${password}@127.0.0.1:${nats.port}`)
    expect((await open({ servers: url('p%40ss') })).connection).toBeDefined()
    const lines: string[] = []
    const logger = createLogger({
      name: 'test',
      level: 'info',
      destination: { write: (line) => void lines.push(line) },
    })
    const wrong = await open({ servers: url('wrong-s3cret'), logger, patienceMs: 100 })
    await expect.poll(() => wrong.trouble).toMatch(/Authorization/i)
    expect(wrong.connection).toBeUndefined()
    expect(lines.join('')).not.toMatch(/s3cret/)
  })

  test('logs in with a token', async () => {
    const nats = await start({ config: 'authorization { token: "s3cret" }' })
    expect((await open({ servers: serversOf(`nats://s3cret@127.0.0.1:${nats.port}`) })).connection).toBeDefined()
    const without = await open({ servers: natsServers(nats.port), patienceMs: 100 })
    await expect.poll(() => without.trouble).toMatch(/Authorization/i)
    expect(without.connection).toBeUndefined()
  })

  test('logs in with a credentials file, and says at once when it is none', async () => {
    const { config, credentials } = natsAccounts()
    const nats = await start({ config })
    const path = await folder()
    await writeFile(join(path, 'user.creds'), credentials, { mode: 0o600 })
    await writeFile(join(path, 'broken.creds'), 'nonsense')
    const link = await open({ servers: natsServers(nats.port), credsFile: join(path, 'user.creds') })
    expect(link.connection).toBeDefined()
    for (const file of ['broken.creds', 'missing.creds'])
      await expect(open({ servers: natsServers(nats.port), credsFile: join(path, file) })).rejects.toMatchObject({
        name: 'StartupError',
        exitCode: 2,
        message: expect.stringContaining(file),
      })
  })

  test('with tls:// a server without TLS is refused', async () => {
    const nats = await start()
    const link = await open({ servers: natsServers(nats.port, {}, true), patienceMs: 100 })
    await expect.poll(() => link.trouble).toMatch(/tls/i)
    expect(link.connection).toBeUndefined()
  })

  test('a certificate of an own authority is believed by NODE_EXTRA_CA_CERTS alone', async () => {
    const path = await folder()
    const certificate = ['-keyout', join(path, 'key.pem'), '-out', join(path, 'cert.pem')]
    const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1']
    const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
    execFileSync('openssl', [...request, ...names, ...certificate], { stdio: 'ignore' })
    const nats = await start({
      config: `tls { cert_file: "${join(path, 'cert.pem')}", key_file: "${join(path, 'key.pem')}" }`,
    })
    const script = `
      import { connectNats } from ${JSON.stringify(fileURLToPath(new URL('../../../platform/nats/nats.ts', import.meta.url)))}
      const [port, tls] = process.argv.slice(1)
      const servers = { addresses: ['localhost:' + port], tls: tls === 'tls', credentials: {} }
      const logger = { info() {}, warn() {} }
      const link = await connectNats({ servers, name: 'test', logger, patienceMs: 2_000 })
      console.log(link.connection ? 'connected' : 'refused: ' + link.trouble)
      await link.close()`
    const run = async (tls: string, env: Record<string, string>) =>
      (
        await runProcess(process.execPath, ['--input-type=module-typescript', '-e', script, String(nats.port), tls], {
          cwd: process.cwd(),
          env,
        })
      ).output
    const trusted = { NODE_EXTRA_CA_CERTS: join(path, 'cert.pem') }
    expect(await run('tls', trusted)).toMatch(/^connected/m)
    expect(await run('nats', trusted)).toMatch(/^connected/m)
    expect(await run('tls', {})).toMatch(/^refused: .*certificate/m)
  })

  test('of several servers one is enough; when it dies the next is taken', async () => {
    const [first, second] = [await start(), await start()]
    const down = await freePort()
    const link = await open({
      servers: {
        addresses: [down, first.port, second.port].map((port) => `127.0.0.1:${port}`),
        tls: false,
        credentials: {},
      },
    })
    const used = () => Number(link.connection?.getServer().split(':')[1])
    const before = used()
    expect([first.port, second.port]).toContain(before)
    await (before === first.port ? first : second).stop()
    await expect.poll(used).toBe(before === first.port ? second.port : first.port)
  })

  test('a server that comes later, goes and comes back is connected to each time', async () => {
    const nats = await start({ running: false })
    const link = await open({ servers: nats.servers, patienceMs: 50 })
    expect(link.connection).toBeUndefined()
    for (let round = 0; round < 2; round += 1) {
      await nats.start()
      await expect.poll(() => link.connection !== undefined).toBe(true)
      expect(link.trouble).toBeUndefined()
      await nats.stop()
      await expect.poll(() => link.connection === undefined).toBe(true)
    }
  })
})
