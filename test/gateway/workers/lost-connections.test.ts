import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { forkWorker, type WorkerProcess } from '../../../gateway/workers/fork-worker.ts'
import { createHandOut } from '../../../gateway/workers/hand-out.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { runProcess } from '../../support/process.ts'
import { until } from '../../support/until.ts'

/** Connections that do not arrive at a worker, and workers that take none. */

const fork = (number: number): WorkerProcess => {
  const worker = forkWorker({
    number,
    patienceMs: { handOver: 200, answer: 2_000 },
    handlersOf: () => ({}) as never,
    stdout: { write: () => true },
  })
  onTestFinished(async () => {
    worker.kill()
    await worker.closed
  })
  return worker
}

/** A port for these workers. Whoever takes a connection ends it, as nothing serves there. */
const start = async (count: number) => {
  const handOut = createHandOut({ metrics: createMetrics() })
  onTestFinished(() => handOut.close())
  const workers = Array.from({ length: count }, (_, index) => fork(index + 1))
  for (const worker of workers) {
    await worker.call('ping', undefined)
    handOut.join(worker)
  }
  const { port } = await handOut.open({ host: '127.0.0.1', port: 0, setting: 'listen.port', tls: undefined })
  const taken = async () => {
    const socket = connect(port, '127.0.0.1').resume()
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    await once(socket, 'close')
  }
  return { workers, taken }
}

test('a worker that may open no more files gets connections again as soon as it may', async () => {
  const { workers, taken } = await start(1)
  const [worker] = workers as [WorkerProcess]
  await taken()
  const limit = (files: string) => execFileSync('prlimit', ['--pid', String(worker.pid), `--nofile=${files}`])
  limit('1:')
  // More than may be on their way at a time.
  const waiting = Array.from({ length: 6 }, taken)
  let lost = 0
  for (const each of waiting) void each.then(() => lost++)
  await worker.call('ping', undefined)
  expect(lost).toBe(0)
  limit('1024:')
  await Promise.all([...waiting, taken()])
})

test('a worker that takes nothing and says nothing is ended, and others get what it has not taken', async () => {
  const { workers, taken } = await start(2)
  const [stopped, other] = workers as [WorkerProcess, WorkerProcess]
  process.kill(stopped.pid!, 'SIGSTOP')
  await Promise.all(Array.from({ length: 4 }, taken))
  expect(await stopped.ended).toBe('SIGKILL, as it stood still')
  expect(other.alive).toBe(true)
})

test('a worker that stood still behind a long message takes what came after it, and answers', async () => {
  const { workers, taken } = await start(1)
  const [worker] = workers as [WorkerProcess]
  process.kill(worker.pid!, 'SIGSTOP')
  // Longer than what the system takes for it, such as rules.
  const long = { bundle: new Uint8Array(4_000_000), name: 'live', path: '/' }
  worker.tell('prepare', { id: 1, policies: [long] })
  let isTaken = false
  const waiting = Promise.all(Array.from({ length: 3 }, taken)).then(() => {
    isTaken = true
  })
  await until(() => expect(worker.connections).toBe(3))
  // It is asked by now, and is not yet ended.
  const now = performance.now()
  await until(() => expect(performance.now()).toBeGreaterThan(now + 400))
  expect(isTaken).toBe(false)
  process.kill(worker.pid!, 'SIGCONT')
  await waiting
  await worker.call('ping', undefined)
})

test('a worker that cannot begin for want of files ends alone, and nothing else of its process group', async () => {
  const program = fileURLToPath(new URL('../../support/fork-without-files.ts', import.meta.url))
  const { output } = await runProcess('prlimit', ['--nofile=100:100', process.execPath, program], { cwd: tmpdir() })
  expect(output).toMatch(/^ended: .*EMFILE/m)
})
