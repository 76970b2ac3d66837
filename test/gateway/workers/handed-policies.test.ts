import { beforeAll, expect, test } from 'vitest'
import { createHandedPolicies } from '../../../gateway/workers/handed-policies.ts'
import type { PolicyBundle } from '../../../gateway/workers/messages.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa, openBundle } from '../../../policies/engine/index.ts'

/** Rules that come to a worker while a gateway that uses them is being built. */

const compiled = async (version: string) => {
  const text = `package surrogate.gateway\n\n# METADATA\n# entrypoint: true\ndecision := {"allow": true, "reason": "${version}"}\n`
  const sources = new Map([['a.rego', Buffer.from(text)]])
  const bundle = new Uint8Array(await compilePolicies({ sources, opa: await findOpa() }))
  const { revision } = await openBundle(bundle)
  return { revision, handed: { name: 'live', path: '/rules', bundle } }
}

let old: { revision: string; handed: PolicyBundle }
let next: { revision: string; handed: PolicyBundle }
beforeAll(async () => {
  ;[old, next] = [await compiled('old'), await compiled('next')]
})

const start = () => {
  const policies = createHandedPolicies({ metrics: createMetrics() })
  policies.hand([old.handed])
  const watch = () => policies.watch({ path: '/rules' } as Parameters<typeof policies.watch>[0])
  return { policies, watch }
}

test('who begins while newer rules are prepared has them when they take over', async () => {
  const { policies, watch } = start()
  const preparing = policies.prepare([next.handed])
  const begun = watch()
  const [prepared, watched] = await Promise.all([preparing, begun])
  expect(watched.current().revision).toBe(old.revision)
  prepared.takeOver()
  expect(watched.current().revision).toBe(next.revision)
  await watched.close()
})

test('who begins after newer rules were prepared has them when they take over', async () => {
  const { policies, watch } = start()
  const prepared = await policies.prepare([next.handed])
  const watched = await watch()
  prepared.takeOver()
  expect(watched.current().revision).toBe(next.revision)
  await watched.close()
})

test('who begins while newer rules take over has them', async () => {
  const { policies, watch } = start()
  const prepared = await policies.prepare([next.handed])
  const begun = watch()
  prepared.takeOver()
  const watched = await begun
  expect(watched.current().revision).toBe(next.revision)
  await watched.close()
})

test('what is thrown away changes nobody', async () => {
  const { policies, watch } = start()
  const [prepared, watched] = await Promise.all([policies.prepare([next.handed]), watch()])
  prepared.discard()
  expect(watched.current().revision).toBe(old.revision)
  const later = await watch()
  expect(later.current().revision).toBe(old.revision)
  await Promise.all([watched.close(), later.close()])
})
