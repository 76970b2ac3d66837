import { expect, test } from 'vitest'
import { createChanges } from '../../../gateway/workers/changes.ts'
import type { WorkerProcess } from '../../../gateway/workers/fork-worker.ts'

/** The order of the steps of a change, with workers that are slow or refuse at a certain one. */

const joined = async (answer: (worker: number, call: string) => Promise<void>) => {
  const steps: string[] = []
  const changes = createChanges({ inForce: () => ({ policies: () => [] }), open: async () => {} })
  for (const number of [1, 2]) {
    const worker = {
      number,
      alive: true,
      call: async (name: string) => {
        await answer(number, name)
        steps.push(`${name} ${number}`)
      },
      tell: (name: string) => steps.push(`${name} ${number}`),
      kill: () => steps.push(`kill ${number}`),
    }
    await changes.join(worker as unknown as WorkerProcess)
  }
  steps.length = 0
  return { changes, steps }
}

test('no worker takes over before new requests wait in all of them', async () => {
  const held = Promise.withResolvers<void>()
  const { changes, steps } = await joined((worker, call) =>
    worker === 2 && call === 'hold' ? held.promise : Promise.resolve(),
  )
  const made = changes.make({ policies: () => [] }, () => steps.push('committed'))
  await expect.poll(() => steps).toContain('hold 1')
  expect(steps).toEqual(['prepare 1', 'prepare 2', 'hold 1'])
  held.resolve()
  await made
  expect(steps.slice(3)).toEqual(['hold 2', 'committed', 'commit 1', 'commit 2'])
})

test('when one cannot prepare a change, all forget it', async () => {
  let refusing = false
  const { changes, steps } = await joined(async (worker, call) => {
    if (refusing && worker === 2 && call === 'prepare') throw new Error('it lacks something')
  })
  refusing = true
  await expect(changes.make({ policies: () => [] }, () => steps.push('committed'))).rejects.toThrow(
    'it lacks something',
  )
  expect(steps).toEqual(['prepare 1', 'discard 1', 'discard 2'])
})

test('a worker that does not hold is ended, and the others take over', async () => {
  const { changes, steps } = await joined(async (worker, call) => {
    if (worker === 2 && call === 'hold') throw new Error('no answer to hold')
  })
  await changes.make({ policies: () => [] }, () => steps.push('committed'))
  expect(steps.filter((step) => !step.endsWith('2'))).toEqual(['prepare 1', 'hold 1', 'committed', 'commit 1'])
  expect(steps).toContain('kill 2')
})

test('whoever joins while a configuration waits for its issuers gets the rules that are in force by then', async () => {
  const given: string[] = []
  let rules = 'old'
  const waits = Promise.withResolvers<void>()
  const policies = () => [{ name: 'live', path: rules, bundle: new Uint8Array() }]
  const changes = createChanges({ inForce: () => ({ policies }), open: async () => {} })
  const join = (number: number) =>
    changes.join({
      number,
      alive: true,
      async call(name: string, body: { id: number; policies: { path: string }[]; configuration?: object }) {
        if (name !== 'prepare') return
        given.push(`${number}: ${body.policies[0]!.path}${body.configuration ? ' with the configuration' : ''}`)
        if (body.configuration) await waits.promise
      },
      tell() {},
      kill() {},
    } as unknown as WorkerProcess)
  await join(1)
  given.length = 0
  const configuration = { file: 'gateway.yaml', text: '', environment: {} }
  const made = changes.make({ configuration, policies }, () => {})
  rules = 'new'
  await join(2)
  waits.resolve()
  await made
  expect(given).toEqual(['1: old with the configuration', '2: new', '2: new with the configuration'])
})
