import { exportJWK, generateKeyPair } from 'jose'
import type { Comparison, Contestant, Page } from '../harness/comparison.ts'
import { nginxInstalled } from '../harness/installed.ts'
import { measure, type Settings, type Spread, spread } from '../harness/measure.ts'
import { type BenchProcess, support, underTest } from '../harness/process.ts'
import { range, tablesOf } from '../harness/report.ts'
import { sendExpecting } from '../harness/send.ts'
import type { Stage } from '../harness/stage.ts'
import type { OpaServerSettings } from '../peers/opa-server.ts'
import { audience, bundle, request, signAccessToken, tampered } from './gateway.ts'

/**
 * What most people run today: nginx asks an OPA server about each request, which verifies the token and decides. Beside
 * it the gateway, which does all of it in one process; and of the decision alone OPA's answer over its Data API beside
 * what the gateway's own stages take. The same access token (ES256) every time, in the gateway verified before.
 */
export const opaServer: Comparison = {
  name: 'opa-server',
  title: 'nginx + OPA server (auth_request, io.jwt.decode_verify) beside the gateway, GET, 1 kB answer',
  run: (stage, settings, progress) => run(stage, settings, progress),
}

const scope = 'read:orders'
const opa = 'OPA server, its decision alone'
const opaRemembers = 'the same, verified tokens kept'
const nginxAndOpa = 'nginx + OPA server'
const ours = 'Surrogate gateway'
const ratios = [
  { of: nginxAndOpa, to: ours, atLeast: 2 },
  { of: `${nginxAndOpa}, verified tokens kept`, to: ours },
]
const timesCheaper = 20
const decisionsARound = 50_000

const run = async (stage: Stage, settings: Settings, progress: (line: string) => void): Promise<Page> => {
  if (!nginxInstalled()) throw new Error('nginx is not installed')
  const { contestants, decision } = await prepare(stage)
  const { process: generator } = await stage.start(new URL('../harness/load-generator.ts', import.meta.url), support)
  const measured = await measure({ ...settings, prepared: { contestants, ratios }, generator, progress })
  await decision.call('decide', decisionsARound)
  const micros: number[] = []
  for (let round = 0; round < settings.rounds; round++) micros.push(await decision.call('decide', decisionsARound))
  const decisions = [opa, opaRemembers].map((name) => {
    const { rounds } = measured.samples.find(({ contestant }) => contestant === name)!
    return { name, ratio: spread(rounds.map(({ cpuMicros }, round) => cpuMicros / micros[round]!)) }
  })
  return page(measured, spread(micros), decisions)
}

const page = (
  measured: Awaited<ReturnType<typeof measure>>,
  micros: Spread,
  [plain, remembering]: { name: string; ratio: Spread }[],
): Page => ({
  tables: [
    ...tablesOf(measured),
    [
      ['of the decision alone', '', 'bar', ''],
      ['Surrogate: token looked up, policy asked, CPU µs', range(micros, 2), '', ''],
      [
        `${plain!.name} / Surrogate`,
        `${range(plain!.ratio, 0)} ×`,
        `≥ ${timesCheaper} ×`,
        plain!.ratio.median >= timesCheaper ? 'met' : 'MISSED',
      ],
      [`${remembering!.name} / Surrogate`, `${range(remembering!.ratio, 0)} ×`, '', ''],
    ],
  ],
  figures: { measured, micros, decisions: [plain, remembering] },
})

const prepare = async (stage: Stage): Promise<{ contestants: Contestant[]; decision: BenchProcess }> => {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' }] }
  const api = await stage.serve(new URL('../peers/upstream.ts', import.meta.url), support, { jwks, postBytes: 0 })
  const upstream = `http://127.0.0.1:${api.port}`
  const sign = (granted: string) => signAccessToken({ privateKey, issuer: upstream, scope: granted })
  const [token, powerless] = await Promise.all([sign(scope), sign('write:orders')])
  const common = { issuer: upstream, audience, scope, jwks } satisfies OpaServerSettings
  const gateway = { upstream, issuer: upstream, audience, bundle }

  const proxied = (port: number, bearer: string) => request({ port, token: bearer, method: 'GET' })
  const contestant = async (options: {
    name: string
    file: string
    settings: object
    wire: (port: number, token: string) => string
    expected: Contestant['expected']
    refusal: number
  }): Promise<Contestant> => {
    const { name, file, settings, wire, expected, refusal } = options
    const server = await stage.serve(new URL(file, import.meta.url), underTest, settings)
    const preflight = async () => {
      for (const bad of [tampered(token), powerless]) await sendExpecting(server.port, wire(server.port, bad), refusal)
    }
    return { name, server, requests: () => [wire(server.port, token)], expected, preflight }
  }
  const opaFile = '../peers/opa-server.ts'
  const asked = { file: opaFile, wire: question, expected: { status: 200, bodyIncludes: 'true' }, refusal: 404 }
  const through = { wire: proxied, expected: { status: 200, bodyIncludes: '"sku-9"' } }
  const remember = true
  const contestants = [
    await contestant({ name: opa, ...asked, settings: common }),
    await contestant({ name: opaRemembers, ...asked, settings: { ...common, remember } }),
    await contestant({ name: nginxAndOpa, file: opaFile, ...through, settings: { ...common, upstream }, refusal: 403 }),
    await contestant({
      name: `${nginxAndOpa}, verified tokens kept`,
      ...{ file: opaFile, ...through, settings: { ...common, upstream, remember }, refusal: 403 },
    }),
    await contestant({ name: ours, file: '../targets/gateway.ts', ...through, settings: gateway, refusal: 401 }),
  ]
  const file = new URL('../targets/gateway-decision.ts', import.meta.url)
  const { process: decision } = await stage.start(file, underTest, { ...gateway, token })
  return { contestants, decision }
}

/** As nginx asks it. */
const question = (port: number, token: string): string => {
  const body = JSON.stringify({ method: 'GET', path: '/orders/42', authorization: `Bearer ${token}` })
  const lines = [
    ...['POST /v0/data/gateway/allow HTTP/1.1', `host: 127.0.0.1:${port}`],
    ...['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`],
  ]
  return [...lines, '', body].join('\r\n')
}
