import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Answer, Call } from './calls.ts'

/**
 * Child processes pinned to one CPU: `startProcess(file, cpu)` runs a file that calls `answerCalls`, and
 * `child.call(name, argument)` runs one of its handlers.
 */
export type BenchProcess = {
  call: <Result>(name: string, argument?: unknown) => Promise<Result>
  /** Ends the child in its own way: see `answerCalls`. */
  stop: () => Promise<void>
}

/** The CPU of the process under test, and the one for everything that only helps. */
export const underTest = 0
export const support = 1
/** For a process whose threads are what is measured. */
export const everywhere = `${underTest},${support}`
export type Cpu = number | typeof everywhere

/** False where `taskset` is missing (macOS, slim images) or the second CPU does not exist. */
export const canPin: boolean = spawnSync('taskset', ['-c', `${underTest},${support}`, 'true']).status === 0

/** `flags`: of Node, as it would be started where that matters. */
export const startProcess = (file: URL, cpu: Cpu, flags: readonly string[] = []): BenchProcess => {
  const node = [process.execPath, ...flags, fileURLToPath(file)]
  const [command = '', ...rest] = canPin ? ['taskset', '-c', String(cpu), ...node] : node
  const child = spawn(command, rest, { stdio: ['ignore', process.stderr, process.stderr, 'ipc'] })
  const call = callsTo(child, file)
  return {
    call,
    stop: async () => {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
      const gone = new Promise((resolve) => child.once('exit', resolve))
      if (child.connected) child.disconnect()
      await gone
    },
  }
}

const callsTo = (child: ChildProcess, file: URL): BenchProcess['call'] => {
  const waiting = new Map<number, { resolve: (result: never) => void; reject: (error: Error) => void }>()
  let lastId = 0

  child.on('message', ({ id, result, error }: Answer) => {
    const call = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) call?.resolve(result as never)
    else call?.reject(new Error(error))
  })
  const fail = (why: string) => {
    for (const { reject } of waiting.values()) reject(new Error(`${file.pathname} ${why}`))
    waiting.clear()
  }
  child.once('error', (error) => fail(`did not start: ${error.message}`))
  child.once('exit', (code, signal) => fail(`ended unexpectedly (${signal ?? code})`))

  return (name, argument) =>
    new Promise((resolve, reject) => {
      if (child.exitCode !== null || !child.connected) return reject(new Error(`${file.pathname} is not running`))
      const id = ++lastId
      waiting.set(id, { resolve, reject })
      child.send({ id, name, argument } satisfies Call)
    })
}
