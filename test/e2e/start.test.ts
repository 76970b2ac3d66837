import { chmod, readFile, rmdir, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { isRunning, runProcess, type TestProcess } from '../support/process.ts'
import {
  cleanUp,
  createCheckout,
  createSettings,
  databasePid,
  demoOf,
  expectConsole,
  keepData,
  npmStart,
  ready,
  type Settings,
  startSurrogate,
} from './stack.ts'

let checkout: Awaited<ReturnType<typeof createCheckout>>
beforeAll(async () => {
  checkout = await createCheckout()
}, 120_000)
/** Of the first test. */
let data: Awaited<ReturnType<typeof keepData>> | undefined
afterAll(async () => {
  await checkout.remove()
  await data?.remove()
})

let settings: Settings
const running: TestProcess[] = []
afterEach(() => cleanUp(settings, ...running.splice(0)))

const started = (child: TestProcess) => {
  running.push(child)
  return child
}

/** A command that ends by itself. */
const run = async (...command: Parameters<typeof startSurrogate>) => {
  const child = started(startSurrogate(...command))
  const { code } = await child.exited
  return { code, output: child.output() }
}

describe('surrogate start --demo', { timeout: 180_000 }, () => {
  test('npm start, npm run demo, Ctrl-C: every step is as expected and nothing is left running', async () => {
    settings = await createSettings(checkout.path)
    const stack = started(npmStart(settings))
    await stack.waitFor(ready)
    const database = await databasePid(settings)
    expect(stack.output()).toContain('Building the console: its sources have changed.')
    await expectConsole(stack)

    const demo = await runProcess('npm', ['run', 'demo'], { cwd: settings.checkout, env: settings.env })
    expect(demo.output).toContain('Every step was as expected.')
    expect(demo.code).toBe(0)

    // Its console finds its gateway by itself.
    const [, setup = '', token] = await stack.waitFor(/(http:\S+\/console\/setup)#([\w-]{43})/)
    const { origin } = new URL(setup)
    const owner = { token, name: 'Ada', primaryEmail: 'ada@example.test', password: 'correct horse battery staple 7' }
    const made = await fetch(setup, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin },
      body: JSON.stringify(owner),
    })
    const cookie = made.headers.getSetCookie().map((line) => line.split(';', 1)[0])
    const asked = await fetch(`${origin}/console/gateways`, { headers: { cookie: cookie.join('; ') } })
    expect({ status: asked.status, body: await asked.json() }).toMatchObject({
      status: 200,
      body: { gateways: [{ name: 'gateway', state: 'answers', revision: expect.any(String) }] },
    })

    const readyz = await fetch(`http://127.0.0.1:${settings.env['ADMIN_PORT']}/readyz`)
    expect({ status: readyz.status, body: await readyz.json() }).toMatchObject({ status: 200, body: { ok: true } })

    stack.signalGroup('SIGINT')
    await stack.exited
    expect(isRunning(database)).toBe(false)
    expect(stack.output()).not.toMatch(/"level":"(error|fatal)"/)
    data = await keepData(settings)
  })

  test('an ordinary user can do the same, and the printed lines work as printed', async () => {
    settings = await createSettings(checkout.path, { ordinary: true })
    const stack = started(startSurrogate(settings, 'start', '--demo'))
    await stack.waitFor(/Ctrl-C stops everything/)
    const script = stack
      .output()
      .split('\n')
      .filter((line) => /^ {2}(curl|[A-Z_]+=)/.test(line))
      .map((line) => line.trim())
    expect(script.length).toBeGreaterThanOrEqual(8)

    const shell = await runProcess('sh', ['-euc', script.join('\n')], { cwd: settings.checkout, env: settings.env })
    expect(shell.output).toMatch(
      /"id_token": "[\s\S]*HTTP\/1\.1 200[\s\S]*"x-auth-act"[\s\S]*HTTP\/1\.1 401[\s\S]*insufficient_scope[\s\S]*subject_token_consumed/,
    )
    expect(shell.code).toBe(0)

    const documented = await runProcess('sh', ['-euc', await documentedLines(settings)], {
      cwd: dirname(settings.dataDir),
      env: settings.env,
    })
    expect(documented.output).toMatch(/"secret":"[\s\S]*"x-auth-sub"[\s\S]*HTTP\/1\.1 401[\s\S]*The token was revoked/)
    expect(documented.code).toBe(0)

    expect((await stat(join(settings.dataDir, 'demo.json'))).mode & 0o777).toBe(0o600)
    stack.signal('SIGTERM')
    expect(await stack.exited).toEqual({ code: 0, signal: null })
  })

  test('after kill -9 the next start takes over the database, with the same data', async () => {
    settings = await createSettings(checkout.path, { data })
    const first = started(startSurrogate(settings, 'start', '--demo'))
    await first.waitFor(ready)
    const made = await demoOf(settings)
    const database = await databasePid(settings)
    first.signal('SIGKILL')
    await first.exited
    expect(isRunning(database)).toBe(true)

    const second = started(startSurrogate(settings, 'start', '--demo'))
    await second.waitFor(ready)
    expect(await demoOf(settings)).toEqual(made)
    const demo = await run(settings, 'demo')
    expect(demo.output).toContain('Every step was as expected.')

    second.signal('SIGINT')
    expect(await second.exited).toEqual({ code: 0, signal: null })
    expect(isRunning(database)).toBe(false)
  })

  test('when its PostgreSQL is gone for good it ends, saying so, and the next start goes on', async () => {
    settings = await createSettings(checkout.path, { data })
    const env = { ...settings.env, LOG_LEVEL: 'silent' }
    const first = started(startSurrogate({ ...settings, env }, 'start', '--demo'))
    await first.waitFor(ready)
    process.kill(await databasePid(settings), 'SIGKILL')
    expect((await first.exited).code).toBe(3)
    expect(first.output()).toMatch(
      /\nThe embedded PostgreSQL has ended\.\nStart again: what was committed is kept\..*\n$/,
    )
    const second = started(startSurrogate(settings, 'start', '--demo'))
    await second.waitFor(ready)
    second.signal('SIGTERM')
    expect((await second.exited).code).toBe(0)
  })

  test('a second start on the same data folder says so and leaves the first alone', async () => {
    settings = await createSettings(checkout.path, { data })
    const first = started(startSurrogate(settings, 'start', '--demo'))
    await first.waitFor(ready)
    const second = await run(settings, 'start', '--demo')
    expect(second.output).toMatch(/in use|already running/i)
    expect(second.output).not.toMatch(/^\s+at /m)
    expect(second.code).not.toBe(0)
    const issuer = await fetch(`http://127.0.0.1:${settings.env['PORT']}/oidc/jwks`)
    expect(issuer.status).toBe(200)
    first.signal('SIGTERM')
    expect((await first.exited).code).toBe(0)
  })

  test.each([
    ['PORT', 'the issuer'],
    ['GATEWAY_PORT', 'the gateway'],
    ['DEMO_PORT', 'the demo API'],
    ['DEMO_WEB_PORT', 'the demo web application'],
    ['ADMIN_PORT', 'the admin listener'],
  ])('when the port of %s is taken it says so in two lines and stops the database', async (name, part) => {
    settings = await createSettings(checkout.path, { data })
    const other = createServer()
    const port = Number(settings.env[name])
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve))
    const child = await run({ ...settings, env: { ...settings.env, LOG_LEVEL: 'silent' } }, 'start', '--demo')
    await new Promise((resolve) => other.close(resolve))
    expect(child.output.trim().split('\n')).toEqual([
      expect.stringMatching(new RegExp(`^Port ${port} is in use: ${part} cannot listen`)),
      expect.stringContaining(`set ${name} to another value`),
    ])
    expect(child.code).toBe(2)
    await expect(databasePid(settings)).rejects.toThrow('ENOENT')
  })

  test('a data folder that cannot be written gives two lines', async () => {
    settings = await createSettings(checkout.path, { ordinary: true })
    await rmdir(settings.dataDir)
    await chmod(dirname(settings.dataDir), 0o500)
    const child = await run({ ...settings, env: { ...settings.env, LOG_LEVEL: 'silent' } }, 'start', '--demo')
    expect(child.output).toContain(settings.dataDir)
    expect(child.output).toContain('SURROGATE_DATA_DIR')
    expect(child.output.trim().split('\n')).toHaveLength(2)
    expect(child.code).toBe(2)
  })

  test('rules that were changed and no compiler for them: the file and what to do', async () => {
    settings = await createSettings(checkout.path, { env: { OPA_BIN: '/nowhere/opa' } })
    const rule = join(checkout.path, 'policies', 'gateway', 'decision.rego')
    const shipped = await readFile(rule, 'utf8')
    await writeFile(rule, `${shipped}\n# changed\n`)
    const child = await run(settings, 'start', '--demo')
    await writeFile(rule, shipped)
    expect(child.output).toMatch(/gateway\/decision\.rego was changed/)
    expect(child.output).toContain('OPA_BIN')
    expect(child.output).not.toMatch(/^\s+at /m)
    expect(child.code).toBe(2)
  })

  test.each([
    [{ DATABASE_URL: 'postgres://127.0.0.1:1/nothing' }, 'DATABASE_URL'],
    [{ NODE_ENV: 'production' }, 'NODE_ENV'],
  ])('the demo refuses %o', async (env, name) => {
    settings = await createSettings(checkout.path, { env })
    const child = await run(settings, 'start', '--demo')
    expect(child.output).toContain(name)
    expect(child.code).toBe(2)
  })
})

describe('the command line', () => {
  test('lists its commands', async () => {
    settings = await createSettings(checkout.path)
    const help = await run(settings, '--help')
    expect(help.output).toMatch(
      /Usage: surrogate <command>[\s\S]*start \[--demo\][\s\S]*gateway check <file>[\s\S]*migrate/,
    )
    expect(help.code).toBe(0)
  })

  test('an unknown command or option is a usage error', async () => {
    settings = await createSettings(checkout.path)
    expect(await run(settings, 'strat')).toMatchObject({ code: 2, output: expect.stringContaining('"strat"') })
    expect(await run(settings, 'start', '--dmeo')).toMatchObject({
      code: 2,
      output: expect.stringContaining('--dmeo'),
    })
  })

  test('npm run demo without a stack says what to do', async () => {
    settings = await createSettings(checkout.path)
    const demo = await run(settings, 'demo')
    expect(demo.output).toContain('npm start')
    expect(demo.code).toBe(3)
  })
})

/** The lines of docs/signing-in.md that go on from each other (`sh`, not `bash`), in a folder beside the data. */
const documentedLines = async ({ checkout, dataDir, env }: Settings): Promise<string> => {
  const page = await readFile(join(checkout, 'docs', 'signing-in.md'), 'utf8')
  const lines = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block).join('\n')
  const ports: Record<string, string> = { 3000: 'GATEWAY_PORT', 3001: 'PORT', 3003: 'DEMO_WEB_PORT' }
  return lines
    .replace(/(?<=(?:localhost|127\.0\.0\.1):)(300[013])\b/g, (port) => env[ports[port]!]!)
    .replaceAll('./.surrogate/', `./${basename(dataDir)}/`)
}
