import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { startUpstream } from '../support/gateway.ts'
import { startProcess } from '../support/process.ts'
import { until } from '../support/until.ts'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))

const startGatewayProcess = async (upstream: string) => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-gateway-'))
  const file = join(folder, 'gateway.yaml')
  const write = (...paths: string[]) =>
    writeFile(
      file,
      stringify({
        version: 1,
        listen: { port: 0 },
        admin: { port: 0 },
        upstreams: { api: { url: upstream } },
        routes: paths.map((path) => ({ id: path.slice(1), path, auth: 'none', upstream: 'api' })),
      }),
    )
  await write('/one')
  const child = startProcess(process.execPath, [surrogate, 'gateway', '--config', file], { cwd: folder })
  onTestFinished(async () => {
    child.signalGroup('SIGKILL')
    await child.exited
    await rm(folder, { recursive: true })
  })
  return { child, write }
}

test('SIGHUP reads gateway.yaml at once; SIGTERM lets a running request end, and then ends the process', async () => {
  const waiting: ServerResponse[] = []
  const upstream = await startUpstream((_request, response) => void waiting.push(response))
  onTestFinished(() => upstream.close())
  const { child, write } = await startGatewayProcess(upstream.url)
  const [, url] = await child.waitFor(/"url":"(http:[^"]+)"[^\n]*the gateway listens/)

  await write('/two')
  child.signal('SIGHUP')
  await child.waitFor(/the configuration was reloaded/)
  expect((await fetch(`${url}/one`)).status).toBe(404)

  const outgoing = request(`${url}/two`).end()
  await until(() => expect(waiting).toHaveLength(1))
  child.signal('SIGTERM')
  await child.waitFor(/stopping/)
  waiting[0]!.end('whole')
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of answer) text += chunk
  expect(text).toBe('whole')
  expect(await child.exited).toEqual({ code: 0, signal: null })
})
