import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** A program under test: what it printed so far, conditions on that, and a stop that cannot be forgotten. */
export interface TestProcess {
  pid: number
  /** Everything printed so far, both streams in order of arrival. */
  output(): string
  /**
   * Resolves with the match once the output matches; rejects when the process ends first or after `timeoutMs` (default
   * 60 000).
   */
  waitFor(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>
  /** To the whole process group, as a terminal's Ctrl-C does. */
  signalGroup(signal: NodeJS.Signals): void
  signal(signal: NodeJS.Signals): void
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export interface ProcessOptions {
  cwd: string
  env?: Record<string, string | undefined>
}

/** Where `npm start` keeps compiled code as well: without it a process reads TypeScript for half a second. */
export const compileCache = fileURLToPath(new URL('../../node_modules/.cache/surrogate', import.meta.url))

export const startProcess = (command: string, args: readonly string[], { cwd, env }: ProcessOptions): TestProcess => {
  const child: ChildProcess = spawn(command, args, {
    cwd,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], NODE_COMPILE_CACHE: compileCache, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own.
    detached: true,
  })
  const pid = child.pid
  if (pid === undefined) throw new Error(`${command} cannot be run.`)
  let output = ''
  const listeners = new Set<() => void>()
  const changed = () => {
    for (const listener of [...listeners]) listener()
  }
  const collect = (chunk: Buffer) => {
    output += chunk.toString()
    changed()
  }
  child.stdout?.on('data', collect)
  child.stderr?.on('data', collect)
  let ended = false
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('close', (code, signal) => {
      ended = true
      changed()
      resolve({ code, signal })
    })
  })
  const kill = (target: number, signal: NodeJS.Signals) => {
    try {
      process.kill(target, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }

  return {
    pid,
    exited,
    output: () => output,
    signal: (signal) => kill(pid, signal),
    signalGroup: (signal) => kill(-pid, signal),
    waitFor: (pattern, timeoutMs = 60_000) =>
      new Promise((resolve, reject) => {
        const finish = (settle: () => void) => {
          clearTimeout(timer)
          listeners.delete(look)
          settle()
        }
        const fail = (reason: string) =>
          finish(() => reject(new Error(`${reason} before its output matched ${pattern}. It printed:\n${output}`)))
        const look = () => {
          const match = pattern.exec(output)
          if (match) finish(() => resolve(match))
          else if (ended) fail('The process ended')
        }
        const timer = setTimeout(() => fail(`${timeoutMs} ms passed`), timeoutMs)
        listeners.add(look)
        look()
      }),
  }
}

/** Runs a program to its end. */
export const runProcess = async (command: string, args: readonly string[], options: ProcessOptions) => {
  const child = startProcess(command, args, options)
  const { code } = await child.exited
  return { code, output: child.output() }
}

/** A process that has ended but was not yet collected by its parent (a zombie) does not run. */
export const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  if (process.platform !== 'linux') return true
  try {
    // proc(5): the state follows the command, which is in parentheses.
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
