import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { ownKeyEncryptionKey } from '../../../../bin/cli/key-file.ts'
import { createSigningKeys } from '../../../../issuer/tokens/keys/signing-keys.ts'
import { migrations } from '../../../../migrations/index.ts'
import { createDatabase, migrate } from '../../../../platform/database/database.ts'
import { startEmbeddedPostgres } from '../../../../platform/embedded-postgres/index.ts'
import { createEnvelope } from '../../../../platform/envelope.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import { runProcess } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const base64 = (key: Uint8Array) => Buffer.from(key).toString('base64')

/** `surrogate keys …` as an operator calls it. */
const keys = (args: string[], env: Record<string, string>) =>
  runProcess(process.execPath, ['bin/surrogate.ts', 'keys', ...args], { cwd: root, env })

describe('with DATABASE_URL', { timeout: 90_000 }, () => {
  const encryptionKey = randomBytes(32)
  let issuer: TestIssuer
  let env: Record<string, string>
  beforeEach(async () => {
    issuer = await startTestIssuer({ config: { keyEncryptionKey: encryptionKey } })
    const { user, password, host, port } = inject('postgres')
    const [{ name }] = (await issuer.sql<{ name: string }>('SELECT current_database() AS name')) as [{ name: string }]
    env = {
      DATABASE_URL: `postgres://${user}:${encodeURIComponent(password)}@localhost:${port}/${name}?host=${encodeURIComponent(host)}`,
      KEY_ENCRYPTION_KEY: base64(encryptionKey),
    }
  })
  afterEach(() => issuer.close())

  const published = async () =>
    (await request(`${issuer.url}/oidc/jwks`)).body.keys.map(({ alg }: { alg: string }) => alg)

  test('list and rotate work beside a running issuer, which follows', async () => {
    const [{ kid }] = (await issuer.sql<{ kid: string }>('SELECT kid FROM signing_keys')) as [{ kid: string }]
    const { KEY_ENCRYPTION_KEY: _, ...withoutKey } = env
    const list = await keys(['list'], withoutKey)
    expect(list).toEqual({
      code: 0,
      output: expect.stringMatching(
        new RegExp(
          `^KEY +ALGORITHM +FOR +STATE +SIGNS FROM +VERIFIES UNTIL\n${kid} +ES256 +everything +active +20\\S+Z\n\\S+ +RS256 +ID tokens with RS256 +active +20\\S+Z\n$`,
        ),
      ),
    })

    const rotated = await keys(['rotate', '--algorithm', 'EdDSA'], env)
    expect(rotated.output).toMatch(/^Key \S+ \(EdDSA\) is published\. From 20\S+Z on it signs/)
    expect(rotated.output).toMatch(new RegExp(`EdDSA +everything +next [\\s\\S]*${kid} +ES256 +everything +active`))
    expect(rotated.code).toBe(0)
    await until(async () => expect(await published()).toEqual(['ES256', 'EdDSA', 'RS256']))

    const token = await issuer.managementToken()
    const replaced = await keys(['rotate', '--now'], env)
    expect(replaced.output).toMatch(/signs now[\s\S]*gateways and other verifiers follow [\s\S]*within 5 minutes/)
    expect(replaced.output).not.toContain(kid)
    expect(replaced.code).toBe(0)
    // Without --algorithm it stays the one that signed.
    await until(async () => expect(await published()).toEqual(['ES256', 'RS256']))
    expect((await issuer.api('GET', '/users', undefined, { token })).status).toBe(401)
    expect((await issuer.api('GET', '/logs?logKey=SigningKeys.Replace')).body).toMatchObject([
      { payload: { by: 'command', replaced: expect.arrayContaining([kid]) } },
    ])
  })

  test('reencrypt brings everything under the new key, says what is missing, and then needs the old one no more', async () => {
    const fresh = base64(randomBytes(32))
    const hook = { name: 'Hook', events: ['User.Created'], config: { url: 'https://example.com', headers: { a: 'b' } } }
    expect((await issuer.api('POST', '/hooks', hook)).status).toBe(201)
    const withoutOld = await keys(['reencrypt'], { ...env, KEY_ENCRYPTION_KEY: fresh })
    expect(withoutOld.output).toMatch(/^0 of 13 [\s\S]*signing_keys\.private_jwk[\s\S]*KEY_ENCRYPTION_KEY_PREVIOUS/)
    expect(withoutOld.code).toBe(1)

    const done = await keys(['reencrypt'], {
      ...env,
      KEY_ENCRYPTION_KEY: fresh,
      KEY_ENCRYPTION_KEY_PREVIOUS: env['KEY_ENCRYPTION_KEY']!,
    })
    expect(done).toEqual({
      code: 0,
      output:
        '13 of 13 secrets were encrypted anew.\nAll secrets are under the current key; the previous one is not needed any more.\n',
    })
    expect((await keys(['rotate'], { ...env, KEY_ENCRYPTION_KEY: fresh })).code).toBe(0)
    const stranger = await keys(['rotate'], env)
    expect(stranger.output).toMatch(
      /^The signing key \S+ cannot be opened: it is under another key-encryption key\.\nSet KEY/,
    )
    expect(stranger.code).toBe(2)
  })

  test('mistakes are said in a line, with exit code 2, or 3 when the database is not there', async () => {
    const { KEY_ENCRYPTION_KEY: _, ...withoutKey } = env
    const said = async (args: string[], environment = env) => {
      const { code, output } = await keys(args, environment)
      return `${code} ${output.split('\n')[0]}`
    }
    expect(await Promise.all([said([]), said(['rotat']), said(['list', '--now'])])).toEqual([
      '2 A subcommand of surrogate keys is missing.',
      '2 surrogate keys has no "rotat".',
      expect.stringMatching(/^2 Unknown option '--now'/),
    ])
    expect(await said(['rotate', '--algorithm', 'HS256'])).toBe('2 There is no signing algorithm "HS256".')
    expect(await said(['rotate'], withoutKey)).toMatch(/^2 KEY_ENCRYPTION_KEY must be set/)
    expect(await said(['reencrypt'], withoutKey)).toMatch(/^2 KEY_ENCRYPTION_KEY must be set/)
    expect(await said(['list'], { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' })).toMatch(
      /^3 The database cannot be reached/,
    )
  })
})

describe('with the embedded database', { timeout: 90_000 }, () => {
  let home: string
  let dataDir: string
  let env: Record<string, string>
  const running: { stop(): Promise<void> }[] = []
  beforeEach(async () => {
    home = await realpath(await mkdtemp(join(tmpdir(), 'surrogate keys ')))
    // As root the server runs as another user, who must get through.
    await chmod(home, 0o711)
    dataDir = join(home, 'data')
    env = { SURROGATE_DATA_DIR: dataDir }
  })
  afterEach(async () => {
    for (const one of running.splice(0)) await one.stop()
    await rm(home, { recursive: true, force: true })
  })

  /** As far as `surrogate start` concerns the keys: the server, its key file, the schema, the signing keys. */
  const start = async () => {
    const server = await startEmbeddedPostgres({ dataDir, logger: silentLogger, settings: { fsync: 'off' } })
    const database = createDatabase({ connection: server.connection, logger: silentLogger, poolSize: 2 })
    const envelope = createEnvelope({ current: Buffer.from(await ownKeyEncryptionKey(server.folder), 'base64') })
    let stopped: Promise<void> | undefined
    const stop = async () => {
      await signing?.close()
      await database.close()
      await server.stop()
    }
    const started = { folder: server.folder, stop: () => (stopped ??= stop()) }
    running.push(started)
    await migrate(database, migrations)
    const signing = await createSigningKeys({ database, envelope, algorithm: 'ES256', logger: silentLogger })
    return { ...started, kid: signing.active().kid, reload: signing.reload, jwks: signing.jwks }
  }

  test('list and rotate work beside the process that runs it, and without one', async () => {
    const nothing = await keys(['list'], env)
    expect(nothing.output).toMatch(/^There is no database in .*data yet\.\nThe first start makes it\./)
    expect(nothing.code).toBe(2)

    const first = await start()
    expect((await keys(['rotate'], env)).code).toBe(0)
    await first.reload()
    expect(JSON.parse(first.jwks().body).keys).toHaveLength(3)
    await first.stop()

    const list = await keys(['list'], env)
    expect(list.output).toMatch(new RegExp(`ES256 +everything +next [\\s\\S]*${first.kid} +ES256 +everything +active`))
    expect(list.code).toBe(0)
    // It left nothing running, and what it left can be started.
    expect(await readdir(join(dataDir, 'cluster'))).not.toContain('postmaster.pid')
    expect((await start()).kid).toBe(first.kid)
  })

  test('reencrypt replaces the key beside the data, only while nothing else runs, and goes on after an interruption', async () => {
    const first = await start()
    const keyFile = join(first.folder, 'key-encryption-key')
    const before = await readFile(keyFile, 'utf8')
    const refused = await keys(['reencrypt'], env)
    expect(refused.output).toMatch(/is in use by another Surrogate process/)
    expect(refused.code).toBe(3)
    expect(await readFile(keyFile, 'utf8')).toBe(before)
    await first.stop()

    // As an interrupted run leaves it: another key is in place, and everything is still under the one before.
    const after = `${base64(randomBytes(32))}\n`
    await writeFile(`${keyFile}.previous`, before, { mode: 0o600 })
    await writeFile(keyFile, after)
    const list = await keys(['rotate'], env)
    expect(list.code).toBe(0)

    expect((await keys(['reencrypt'], env)).output).toMatch(/^2 of 3 secrets were encrypted anew/)
    expect(await readFile(keyFile, 'utf8')).toBe(after)
    expect(await readdir(first.folder)).not.toContain('key-encryption-key.previous')
    const second = await start()
    expect(second.kid).toBe(first.kid)
    await second.stop()

    // And from the beginning.
    expect((await keys(['reencrypt'], env)).output).toMatch(/^3 of 3 secrets were encrypted anew/)
    expect(await readFile(keyFile, 'utf8')).not.toBe(after)
    expect((await start()).kid).toBe(first.kid)
  })
})
