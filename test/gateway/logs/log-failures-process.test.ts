import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { freePort } from '../../support/free-port.ts'
import { startUpstream, type TestUpstream } from '../../support/gateway.ts'
import { runProcess, startProcess, type TestProcess } from '../../support/process.ts'
import { until } from '../../support/until.ts'

const surrogate = fileURLToPath(new URL('../../../bin/surrogate.ts', import.meta.url))

let upstream: TestUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream.close())

let folder = ''
const kills: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'log-failures-'))
})
afterEach(async () => {
  for (const kill of kills.splice(0)) await kill()
  await rm(folder, { recursive: true })
})

const write = (logs: Record<string, unknown>, port = 0) =>
  writeFile(
    join(folder, 'gateway.yaml'),
    stringify({
      version: 1,
      listen: { port },
      admin: { port: 0 },
      ...logs,
      upstreams: { api: { url: upstream.url } },
      routes: [{ id: 'api', path: '/api/**', auth: 'none', upstream: 'api' }],
    }),
  )

const start = async (): Promise<{ child: TestProcess; url: string }> => {
  const child = startProcess(process.execPath, [surrogate, 'gateway'], { cwd: folder })
  kills.push(() => {
    child.signalGroup('SIGKILL')
    return child.exited
  })
  const [, url] = await child.waitFor(/"url":"(http:[^"]+)"[^\n]*the gateway listens/)
  return { child, url: url! }
}

const pathsIn = async (name: string) =>
  (await readFile(join(folder, name), 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line).path)

describe('a log file that cannot be opened', () => {
  test('is refused by the check and at the start, naming the log, the file and the reason; nothing is made', async () => {
    await writeFile(join(folder, 'file'), '')
    await write({ accessLog: { to: 'fine/access.jsonl' }, decisionLog: { to: 'file/decisions.jsonl' } })
    const said = `The decision log cannot be opened: ${folder}/file/decisions.jsonl (ENOTDIR)\n`
    const checked = await runProcess(process.execPath, [surrogate, 'gateway', 'check', 'gateway.yaml'], { cwd: folder })
    expect(checked).toEqual({ code: 1, output: expect.stringContaining(said) })
    const started = await runProcess(process.execPath, [surrogate, 'gateway'], { cwd: folder })
    expect(started).toEqual({ code: 2, output: expect.stringContaining(said) })
    await expect(readFile(join(folder, 'fine', 'access.jsonl'))).rejects.toThrow('ENOENT')
  })

  test('keeps a reload from taking over: the old file stays in use, and it is told', async () => {
    await write({ accessLog: { to: 'access.jsonl' } })
    const { child, url } = await start()
    await writeFile(join(folder, 'file'), '')
    await write({ accessLog: { to: 'file/access.jsonl' } })
    child.signal('SIGHUP')
    await child.waitFor(/the configuration was not reloaded/)
    expect(child.output()).toContain(`The access log cannot be opened: ${folder}/file/access.jsonl (ENOTDIR)`)
    for (let n = 0; n < 5; n++) expect((await fetch(`${url}/api/${n}`)).status).toBe(200)
    child.signal('SIGTERM')
    expect(await child.exited).toEqual({ code: 0, signal: null })
    expect(await pathsIn('access.jsonl')).toEqual(['/api/0', '/api/1', '/api/2', '/api/3', '/api/4'])
  })

  test('when SIGHUP asks for it anew leaves the file that was moved away in use, and it is told', async () => {
    await write({ accessLog: { to: 'logs/access.jsonl' } })
    const { child, url } = await start()
    expect((await fetch(`${url}/api/before`)).status).toBe(200)
    await rename(join(folder, 'logs'), join(folder, 'moved'))
    await writeFile(join(folder, 'logs'), 'in the way')
    child.signal('SIGHUP')
    await child.waitFor(/the configuration was not reloaded/)
    await child.waitFor(/"file":"[^"]*\/logs\/access\.jsonl"[^\n]*the file that was open stays in use/)
    expect((await fetch(`${url}/api/after`)).status).toBe(200)
    await rm(join(folder, 'logs'))
    await mkdir(join(folder, 'logs'))
    child.signal('SIGHUP')
    await until(async () => expect(await readFile(join(folder, 'logs', 'access.jsonl'), 'utf8')).toBe(''))
    expect((await fetch(`${url}/api/again`)).status).toBe(200)
    child.signal('SIGTERM')
    expect(await child.exited).toEqual({ code: 0, signal: null })
    expect(await pathsIn('moved/access.jsonl')).toEqual(['/api/before', '/api/after'])
    expect(await pathsIn('logs/access.jsonl')).toEqual(['/api/again'])
  })
})

const startInto = async (
  stdout: number,
  logs: Record<string, unknown>,
): Promise<{ child: ChildProcess; url: string }> => {
  const port = await freePort()
  await write(logs, port)
  const child = spawn(process.execPath, [surrogate, 'gateway'], { cwd: folder, stdio: ['ignore', stdout, 'pipe'] })
  kills.push(async () => void child.kill('SIGKILL'))
  const url = `http://127.0.0.1:${port}`
  await until(async () => expect((await fetch(`${url}/api/first`)).status).toBe(200))
  return { child, url }
}

describe('whatever becomes of the logs, requests are answered and SIGTERM ends the gateway', () => {
  test('a disk that is full, for both logs and for what the process says', async () => {
    const full = openSync('/dev/full', 'w')
    const { child, url } = await startInto(full, { decisionLog: { to: '/dev/full' }, accessLog: { to: 'stdout' } })
    closeSync(full)
    for (let n = 0; n < 20; n++) expect((await fetch(`${url}/api/${n}`)).status).toBe(200)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  test('a stdout that nobody reads', async () => {
    const pipe = join(folder, 'pipe')
    expect(spawnSync('mkfifo', [pipe]).status).toBe(0)
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
    const writer = openSync(pipe, constants.O_WRONLY)
    const { child, url } = await startInto(writer, { decisionLog: { to: 'stdout' }, accessLog: { to: 'access.jsonl' } })
    closeSync(writer)
    const agent = 'x'.repeat(4_000)
    for (let n = 0; n < 60; n++) expect((await fetch(`${url}/api/${n}?${agent}`)).status).toBe(200)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
    closeSync(reader)
    expect(readFileSync(join(folder, 'access.jsonl'), 'utf8').trim().split('\n')).toHaveLength(61)
  })
})
