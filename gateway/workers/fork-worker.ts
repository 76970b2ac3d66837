import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import type { LineWriter } from '../../platform/line-writer.ts'
import { moduleUrl } from '../../platform/module-url.ts'
import { type Channel, createChannel, type Handlers } from './channel.ts'
import { primaryCalls, workerCalls } from './messages.ts'
import { relayLines } from './relay-lines.ts'

/** A worker process, as the primary process sees it. */
export interface WorkerProcess extends Pick<Channel<typeof workerCalls>, 'call' | 'tell'> {
  /** From 1; whoever takes its place has the same. */
  readonly number: number
  readonly pid: number | undefined
  /** Whether it still runs. */
  readonly alive: boolean
  /** Resolves when it has ended, with how: `exit code 1`, `SIGKILL`. */
  readonly ended: Promise<string>
  /** Resolves when all that it printed has been read, too. */
  readonly closed: Promise<void>
  kill(): void
}

export type PrimaryHandlers = Handlers<typeof primaryCalls>

/** @param stdout takes what it prints. */
export const forkWorker = (options: {
  number: number
  /** What answers its calls. */
  handlersOf: (worker: WorkerProcess) => PrimaryHandlers
  stdout: Pick<LineWriter, 'write'>
}): WorkerProcess => {
  const { number, handlersOf, stdout } = options
  // Connections are handed to the workers in turn. Where each accepts for itself, one may get most of them.
  cluster.schedulingPolicy = cluster.SCHED_RR
  cluster.setupPrimary({
    exec: fileURLToPath(moduleUrl('./worker-process', import.meta.url)),
    args: [],
    serialization: 'advanced',
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const worker = cluster.fork()
  const child = worker.process
  let alive = true

  const ended = new Promise<string>((resolve) => {
    const end = (how: string) => {
      alive = false
      channel.end()
      resolve(how)
    }
    child.once('exit', (code, signal) => end(signal ?? `exit code ${code}`))
    child.once('error', (error) => end(error.message))
  })
  const self: WorkerProcess = {
    number,
    pid: child.pid,
    get alive() {
      return alive
    },
    call: (...call) => channel.call(...call),
    tell: (...call) => channel.tell(...call),
    ended,
    closed: new Promise((resolve) => child.once('close', () => resolve())),
    kill: () => void child.kill('SIGKILL'),
  }
  const channel = createChannel<typeof primaryCalls, typeof workerCalls>({
    ours: primaryCalls,
    theirs: workerCalls,
    handlers: handlersOf(self),
    send: (message) => void child.send(message, undefined, undefined, () => {}),
  })
  worker.on('message', channel.receive)
  worker.on('error', () => {})
  if (child.stdout) relayLines(child.stdout, stdout)
  return self
}
