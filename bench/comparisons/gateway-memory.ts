import { connect } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import type { Comparison, Page } from '../harness/comparison.ts'
import type { Load, LoadResult } from '../harness/load-generator.ts'
import type { Settings } from '../harness/measure.ts'
import { support, underTest } from '../harness/process.ts'
import type { Stage } from '../harness/stage.ts'
import { audience, bundle, request, signAccessToken } from './gateway.ts'

/**
 * Whether the gateway keeps anything: a million requests over kept-alive connections with 10 000 different tokens, and
 * clients that leave in the middle of what they ask or are told. Memory is read after a full collection.
 */
export const gatewayMemory: Comparison = {
  name: 'gateway-memory',
  title: 'Gateway, memory over a million requests',
  run: (stage, settings, progress) => run(stage, settings, progress),
}

/** With the default 8 rounds of 2 s; fewer in proportion. */
const allRequests = 1_000_000
const defaultSeconds = 16
const stages = 10
const distinctTokens = 10_000
/** Of what is held after the first two stages, when caches and pools are full. */
const mayGrow = 1.1

interface Held {
  requests: number
  left: number
  heapUsed: number
  rss: number
}

const run = async (stage: Stage, settings: Settings, progress: (line: string) => void): Promise<Page> => {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' }] }
  const api = await stage.serve(new URL('../peers/upstream.ts', import.meta.url), support, { jwks, postBytes: 2_048 })
  const upstream = `http://127.0.0.1:${api.port}`
  const { port, process: gateway } = await stage.serve(new URL('../targets/gateway.ts', import.meta.url), underTest, {
    upstream,
    issuer: upstream,
    audience,
    bundle,
  })
  const { process: generator } = await stage.start(new URL('../harness/load-generator.ts', import.meta.url), support)
  const requests = await Promise.all(
    Array.from({ length: distinctTokens }, async () =>
      request({
        method: 'GET',
        port,
        token: await signAccessToken({ privateKey, issuer: upstream, scope: 'read:orders' }),
      }),
    ),
  )
  const impatient = request({
    ...{ method: 'POST', port, body: 'x'.repeat(2_048) },
    token: await signAccessToken({ privateKey, issuer: upstream, scope: 'read:orders' }),
  })
  const share = Math.min(1, (settings.rounds * settings.seconds) / defaultSeconds)
  const perStage = Math.ceil((allRequests * share) / stages)

  const held: Held[] = []
  let [done, left] = [0, 0]
  for (let number = 1; number <= stages; number++) {
    progress(`stage ${number}/${stages}`)
    const wanted = done + perStage
    while (done < wanted) {
      const leaving = leaveInTheMiddle(port, impatient)
      const load: Load = {
        ...{ port, connections: settings.connections, seconds: 1, requests, once: false },
        expected: { status: 200, bodyIncludes: '"sku-9"' },
      }
      done += (await generator.call<LoadResult>('run', load)).requests
      left += await leaving.stop()
    }
    held.push({ requests: done, left, ...(await gateway.call<{ rss: number; heapUsed: number }>('memory')) })
  }
  progress('')
  return page(held)
}

/** Opens connections, sends a part or all of a request, and goes: before, within and after the answer. */
const leaveInTheMiddle = (port: number, text: string) => {
  let [count, stopping] = [0, false]
  const one = async (): Promise<void> => {
    while (!stopping) {
      const length = count % 3 === 0 ? Math.floor(text.length / 2) : text.length
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      await new Promise<void>((resolve) => {
        socket.on('connect', () => socket.write(text.slice(0, length), () => setTimeout(resolve, count % 4)))
        socket.on('close', () => resolve())
      })
      socket.resetAndDestroy()
      count++
    }
  }
  const all = Promise.all(Array.from({ length: 4 }, one))
  return {
    stop: async () => {
      stopping = true
      await all
      return count
    },
  }
}

const page = (held: readonly Held[]): Page => {
  const megabytes = (bytes: number) => (bytes / 2 ** 20).toFixed(1)
  const growth = (of: 'heapUsed' | 'rss') => held.at(-1)![of] / held[1]![of]
  const verdict = (of: 'heapUsed' | 'rss') => (growth(of) <= mayGrow ? 'met' : 'MISSED')
  const rows = held.map((one) => [
    ...[String(one.requests), String(one.left)],
    ...[megabytes(one.heapUsed), megabytes(one.rss)],
  ])
  return {
    tables: [
      [['requests', 'left early', 'heap MB', 'resident MB'], ...rows],
      [
        ['last / second stage', '', 'bar', ''],
        ['heap', `${growth('heapUsed').toFixed(2)} ×`, `≤ ${mayGrow} ×`, verdict('heapUsed')],
        ['resident', `${growth('rss').toFixed(2)} ×`, `≤ ${mayGrow} ×`, verdict('rss')],
      ],
    ],
    figures: held,
  }
}
