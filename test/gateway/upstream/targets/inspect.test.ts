import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { adminUrlOf, inspectionText } from '../../../../bin/gateway/inspect.ts'
import { freePort } from '../../../support/free-port.ts'
import { runProcess, startProcess } from '../../../support/process.ts'
import { startTarget } from '../../../support/targets.ts'
import { until } from '../../../support/until.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const surrogate = join(root, 'bin/surrogate.ts')

test('surrogate gateway inspect shows the targets of a running gateway', async () => {
  const [ill, well] = [await startTarget(), await startTarget()]
  ill.checkStatus = 503
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-inspect-'))
  const port = await freePort()
  const config = {
    version: 1,
    listen: { port: 0 },
    admin: { port },
    upstreams: {
      orders: {
        targets: [
          { url: ill.url, weight: 9 },
          { url: well.url, labels: { track: 'canary' } },
        ],
        health: { path: '/healthz', interval: '100ms', timeout: '100ms' },
        slowStart: '0s',
      },
    },
    routes: [{ id: 'all', path: '/all', auth: 'none', upstream: 'orders' }],
  }
  const file = join(folder, 'gateway.yaml')
  await writeFile(file, stringify(config))
  const child = startProcess(process.execPath, [surrogate, 'gateway', '--config', file], { cwd: folder })
  onTestFinished(async () => {
    child.signalGroup('SIGKILL')
    await child.exited
    await Promise.all([ill.close(), well.close()])
    await rm(folder, { recursive: true })
  })
  await child.waitFor(/the gateway listens/)
  await until(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`)
    expect(await answer.text()).toContain(`1 of 2 well; ${ill.url} fails its checks (status 503)`)
  })

  const run = (...args: string[]) =>
    runProcess(process.execPath, [surrogate, 'gateway', 'inspect', ...args], { cwd: folder })
  const shown = await run()
  expect(shown.code).toBe(0)
  expect(shown.output.replaceAll(ill.url, 'http://a:1').replaceAll(well.url, 'http://b:1')).toMatch(
    /^revision [0-9a-f]{12}\n\norders \(least-requests\): 1 of 2 well, 0 running\n {2}TARGET +STATE +WEIGHT +RUNNING +ANSWERED +FAILED +EJECTED +LABELS\n {2}http:\/\/a:1 +out, status 503 +9 +0 +0 +0 +0\n {2}http:\/\/b:1 +in, healthy +1 +0 +0 +0 +0 +track=canary\n$/,
  )
  const json = await run('--json', '--admin', `http://127.0.0.1:${port}`)
  expect(JSON.parse(json.output)).toMatchObject({
    upstreams: [{ name: 'orders', overdrawn: false, targets: [{ state: 'out' }, { state: 'in', health: 'healthy' }] }],
  })

  child.signal('SIGTERM')
  expect(await child.exited).toEqual({ code: 0, signal: null })
  const afterwards = await run()
  expect(afterwards).toMatchObject({ code: 2, output: expect.stringContaining('does not answer at') })
}, 60_000)

test.each([
  [{ host: '0.0.0.0', port: 1 }, 'http://127.0.0.1:1'],
  [{ host: '::', port: 1 }, 'http://[::1]:1'],
  [{ host: 'fd00::1', port: 1 }, 'http://[fd00::1]:1'],
  [{ host: 'gateway.test', port: 9300 }, 'http://gateway.test:9300'],
])('the listener at %j is asked at %s', (admin, url) => {
  expect(adminUrlOf(admin)).toBe(url)
})

test('a table says what is not as usual', () => {
  const target = { labels: {}, weight: 1, ejections: 0, share: 1, running: 0, answered: 0, failed: 0, neither: 0 }
  const text = inspectionText({
    revision: '1',
    upstreams: [
      {
        name: 'orders',
        balance: { hash: 'subject' },
        running: 2,
        overdrawn: true,
        targets: [
          { ...target, name: 'http://a', state: 'used', health: 'unknown', ejectedForMs: 1_400, ejections: 3 },
          { ...target, name: 'http://b', state: 'in', health: 'unknown', share: 0.25 },
        ],
        names: [{ host: 'a', addresses: ['10.0.0.1'], problem: 'ENOTFOUND' }],
      },
    ],
  })
  expect(text).toMatchInlineSnapshot(`
    "revision 1

    orders (hash: subject): 1 of 2 well, 2 running
      Too many are out: all of them are used.
      a cannot be resolved (ENOTFOUND): its last addresses are used.
      TARGET    STATE                  WEIGHT  RUNNING  ANSWERED  FAILED  EJECTED  LABELS
      http://a  used, ejected for 2 s       1        0         0       0        3
      http://b  in, 25% of its share        1        0         0       0        0
    "
  `)
})

test('targets keep no process alive', async () => {
  const program = `
    const { openTargets } = await import('./test/support/targets.ts')
    openTargets({
      targets: [{ url: 'http://localhost:1' }, { url: 'http://127.0.0.1:1' }],
      dns: {}, ejection: {}, health: { path: '/', interval: '100ms', timeout: '100ms' },
    })
    console.log('opened')
  `
  const { code, output } = await runProcess(process.execPath, ['--input-type=module-typescript', '-e', program], {
    cwd: root,
  })
  expect({ code, output }).toEqual({ code: 0, output: 'opened\n' })
})
