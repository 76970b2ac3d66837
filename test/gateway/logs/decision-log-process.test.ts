import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { startUpstream } from '../../support/gateway.ts'
import { startProcess } from '../../support/process.ts'
import { until } from '../../support/until.ts'

const surrogate = fileURLToPath(new URL('../../../bin/surrogate.ts', import.meta.url))

test('logs rotated by renaming and SIGHUP lose no line, and what is left is written when the gateway stops', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-logs-'))
  const upstream = await startUpstream()
  await writeFile(
    join(folder, 'gateway.yaml'),
    stringify({
      version: 1,
      listen: { port: 0 },
      admin: { port: 0 },
      decisionLog: { to: 'logs/decisions.jsonl' },
      accessLog: { to: 'logs/access.jsonl' },
      upstreams: { api: { url: upstream.url } },
      routes: [{ id: 'api', path: '/api/**', auth: 'none', upstream: 'api' }],
    }),
  )
  const child = startProcess(process.execPath, [surrogate, 'gateway'], { cwd: folder })
  onTestFinished(async () => {
    child.signalGroup('SIGKILL')
    await child.exited
    await upstream.close()
    await rm(folder, { recursive: true })
  })
  const [, url] = await child.waitFor(/"url":"(http:[^"]+)"[^\n]*the gateway listens/)
  const file = (name: string) => join(folder, 'logs', name)
  const linesOf = async (name: string) => (await readFile(file(name), 'utf8')).split('\n').filter(Boolean)
  const call = async (from: number, to: number) => {
    for (let n = from; n < to; n++) expect((await fetch(`${url}/api/${n}`)).status).toBe(200)
  }

  await call(0, 10)
  for (const name of ['decisions', 'access']) await rename(file(`${name}.jsonl`), file(`${name}.1.jsonl`))
  await call(10, 15)
  child.signal('SIGHUP')
  await until(async () => {
    for (const name of ['decisions.jsonl', 'access.jsonl']) expect(await linesOf(name)).toEqual([])
  })
  await call(15, 30)
  child.signal('SIGTERM')
  expect(await child.exited).toEqual({ code: 0, signal: null })

  const expected = Array.from({ length: 30 }, (_, n) => `/api/${n}`)
  const access = [...(await linesOf('access.1.jsonl')), ...(await linesOf('access.jsonl'))]
  expect(access.map((line) => JSON.parse(line).path)).toEqual(expected)
  const decisions = [...(await linesOf('decisions.1.jsonl')), ...(await linesOf('decisions.jsonl'))]
  expect(decisions.map((line) => JSON.parse(line).input.request.path)).toEqual(expected)
  expect((await linesOf('access.jsonl')).length).toBe(15)
})
