import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { startProcess, type TestProcess } from '../support/process.ts'
import { until } from '../support/until.ts'

const running: TestProcess[] = []
afterEach(async () => {
  for (const child of running.splice(0)) {
    child.signalGroup('SIGKILL')
    await child.exited
  }
})

const start = (mode = '') => {
  const fixture = fileURLToPath(new URL('./serve-fixture.ts', import.meta.url))
  const child = startProcess(process.execPath, [fixture, mode], { cwd: process.cwd() })
  running.push(child)
  return child
}

const lines = (child: TestProcess) => child.output().trim().split('\n')

test.each(['SIGINT', 'SIGTERM'] as const)('%s releases in reverse order and ends with 0', async (signal) => {
  const child = start()
  await child.waitFor(/started/)
  child.signal(signal)
  expect(await child.exited).toEqual({ code: 0, signal: null })
  expect(lines(child)).toEqual(['starting', 'started', 'released second', 'released first'])
})

test('the same signal twice at once, from a terminal and from npm, is one signal', async () => {
  const child = start()
  await child.waitFor(/started/)
  child.signal('SIGINT')
  child.signal('SIGINT')
  expect(await child.exited).toEqual({ code: 0, signal: null })
})

test('a second signal ends what does not want to stop', async () => {
  const child = start('hangs')
  await child.waitFor(/started/)
  child.signal('SIGINT')
  await child.waitFor(/released second/)
  let ended = false
  void child.exited.then(() => {
    ended = true
  })
  await until(() => {
    child.signal('SIGINT')
    expect(ended).toBe(true)
  })
  expect(await child.exited).toEqual({ code: 130, signal: null })
})

test('a signal during the start waits for what is being opened, and releases it', async () => {
  const child = start('signalled-while-starting')
  await child.waitFor(/starting/)
  child.signal('SIGTERM')
  expect(await child.exited).toEqual({ code: 0, signal: null })
  expect(lines(child).slice(-2)).toEqual(['released second', 'released first'])
})

test('a start that fails releases what it opened and says why', async () => {
  const child = start('fails')
  expect(await child.exited).toEqual({ code: 3, signal: null })
  expect(lines(child)).toEqual(['starting', 'released second', 'released first', 'failed: cannot start'])
})

test('a rejection that nobody handles stops the service in order, with 1', async () => {
  const child = start('rejects')
  expect(await child.exited).toEqual({ code: 1, signal: null })
  expect(lines(child)).toEqual(['starting', 'started', 'released second', 'released first'])
})

test('a part that is lost later stops the service in order, and says why', async () => {
  const child = start('lost')
  expect(await child.exited).toEqual({ code: 3, signal: null })
  expect(lines(child)).toEqual([
    'starting',
    'started',
    'released second',
    'released first',
    'failed: the database has ended',
  ])
})

test('it is not ready before its start is over', async () => {
  const child = start('tells-readiness')
  await child.waitFor(/ready: true/)
  expect(lines(child)).toEqual(['starting', 'ready: false', 'started', 'ready: true'])
})
