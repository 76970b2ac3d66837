import { expect, onTestFinished, test } from 'vitest'
import { createAnswers } from '../../../gateway/workers/answers.ts'
import { type Change, createChanges } from '../../../gateway/workers/changes.ts'
import { forkWorker, type WorkerProcess } from '../../../gateway/workers/fork-worker.ts'
import type { PolicyBundle } from '../../../gateway/workers/messages.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa, openBundle } from '../../../policies/engine/index.ts'

const compiled = async (version: string) => {
  const text = `package surrogate.gateway\n\n# METADATA\n# entrypoint: true\ndecision := {"allow": true, "reason": "${version}"}\n`
  const sources = new Map([['a.rego', Buffer.from(text)]])
  const bundle = new Uint8Array(await compilePolicies({ sources, opa: await findOpa() }))
  const handed: PolicyBundle = { name: 'live', path: '/rules', bundle }
  return { revision: (await openBundle(bundle)).revision, handed }
}

const configuration = {
  file: '/nowhere/gateway.yaml',
  text: `
version: 1
workers: 2
allowInsecure: [public-by-default]
issuers: [{ issuer: 'http://127.0.0.1:9/oidc' }]
policies: { path: /rules }
upstreams: { api: { url: 'http://127.0.0.1:9' } }
routes: [{ id: a, path: /**, auth: none, upstream: api }]
`,
  environment: {},
}

test('a worker that joins while newer rules take over in the others has them, though its issuer is away', async () => {
  const [old, next] = [await compiled('old'), await compiled('next')]
  const answers = createAnswers({ metrics: createMetrics() })
  let rules = old.handed
  const inForce = (): Change => ({ configuration, policies: () => [rules] })
  const changes = createChanges({ inForce, open: async () => {} })
  const worker = forkWorker({
    number: 1,
    stdout: { write: () => true },
    handlersOf: (self) => ({ ...answers.to(self, () => {}), decisions: () => {} }),
  })
  onTestFinished(async () => {
    worker.kill()
    await worker.closed
    await answers.close()
  })
  await worker.call('start', {
    ...{ worker: 1, of: 2, portSetting: 'listen.port', first: configuration },
    log: { name: 'test', level: 'silent' },
    ticketKeys: Buffer.alloc(48),
    nonceKey: Buffer.alloc(32),
  })
  let isFirst = true
  const call: WorkerProcess['call'] = async (name, ...rest) => {
    const answer = await worker.call(name, ...rest)
    // The others take over while this one has only what was in force before.
    if (name === 'prepare' && isFirst) {
      isFirst = false
      await changes.make({ policies: () => [next.handed] }, () => {
        rules = next.handed
      })
    }
    return answer
  }
  await changes.join({ ...worker, alive: true, call })
  const { checks } = await worker.call('health', undefined)
  expect(checks['gateway policies']?.detail).toContain(next.revision)
})
