import { fork, type SendHandle } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { LineWriter } from '../../platform/line-writer.ts'
import { moduleUrl } from '../../platform/module-url.ts'
import { type Channel, createChannel, type Handlers } from './channel.ts'
import { primaryCalls, workerCalls } from './messages.ts'
import { relayLines } from './relay-lines.ts'
import type { Handed, OpenConnections, Taken } from './taken-connections.ts'

/** A worker process, as the primary process sees it. */
export interface WorkerProcess extends Pick<Channel<typeof workerCalls>, 'call' | 'tell'> {
  /** From 1; whoever takes its place has the same. */
  readonly number: number
  readonly pid: number | undefined
  /** Whether it still runs and can be told something. */
  readonly alive: boolean
  /** Resolves when it has ended, with how: `exit code 1`, `SIGKILL`, and why it was ended here. */
  readonly ended: Promise<string>
  /** Resolves when all that it printed has been read, too. */
  readonly closed: Promise<void>
  /** About how many connections it has. */
  readonly connections: number
  /**
   * Hands over the connection of a native handle, which has to stay open until this resolves: to whether the worker has
   * taken it. False: it has ended, or it never got it, and has read nothing of it.
   */
  hand(connection: object, listener?: Handed['listener']): Promise<boolean>
  kill(): void
}

export type PrimaryHandlers = Handlers<typeof primaryCalls>

/** When a worker is asked whether it has lost a connection, and ended when it does not say. In ms. */
const patience = { handOver: 10_000, answer: 5_000 }

/**
 * Throws when the system gives no process; one that cannot run ends at once.
 *
 * @param stdout takes what it prints.
 */
export const forkWorker = (options: {
  number: number
  /** Shorter for tests. */
  patienceMs?: typeof patience
  /** What answers its calls. */
  handlersOf: (worker: WorkerProcess) => PrimaryHandlers
  stdout: Pick<LineWriter, 'write'>
}): WorkerProcess => {
  const { number, handlersOf, stdout, patienceMs = patience } = options
  const child = fork(fileURLToPath(moduleUrl('./worker-process', import.meta.url)), [], {
    serialization: 'advanced',
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  let alive = true
  let stoodStill = false
  let connections = 0
  let lastHanded = 0
  /** Connections on their way. */
  const handed = new Map<number, (taken: boolean) => void>()

  const ended = new Promise<string>((resolve) => {
    const end = (how: string) => {
      alive = false
      channel.end()
      resolve(how)
    }
    child.once('exit', (code, signal) =>
      end(`${signal ?? `exit code ${code}`}${stoodStill ? ', as it stood still' : ''}`),
    )
    child.once('error', (error) => end(error.message))
  })
  // Both come after all that the worker has said, as its exit may not. Node leaves out the first one while a handle is
  // on its way.
  for (const event of ['disconnect', 'close']) {
    child.once(event, () => {
      alive = false
      for (const id of handed.keys()) settle(id, false)
    })
  }
  const settle = (id: number, isTaken: boolean) => {
    handed.get(id)?.(isTaken)
    handed.delete(id)
  }
  /**
   * What it is told comes in order, so a connection from before an answer has come as well, or is lost: Node drops one
   * that comes while the worker may open no more files. Whoever says nothing may still take it, and is ended.
   */
  const findLost = async (id: number) => {
    try {
      await channel.call('ping', undefined, patienceMs.answer)
      settle(id, false)
    } catch {
      // It was only slow.
      if (!handed.has(id)) return
      stoodStill = alive
      self.kill()
    }
  }
  const receive = (message: object) => {
    if ('open' in message) connections = (message as OpenConnections).open + handed.size
    else if ('taken' in message) settle((message as Taken).taken, true)
    else channel.receive(message)
  }
  const self: WorkerProcess = {
    number,
    pid: child.pid,
    get alive() {
      return alive && child.connected
    },
    call: (...call) => channel.call(...call),
    tell: (...call) => channel.tell(...call),
    ended,
    closed: new Promise((resolve) => child.once('close', () => resolve())),
    get connections() {
      return connections
    },
    hand: (connection, listener) =>
      new Promise((resolve) => {
        if (!child.connected) return resolve(false)
        const id = ++lastHanded
        const late = setTimeout(() => void findLost(id), patienceMs.handOver)
        handed.set(id, (taken) => {
          clearTimeout(late)
          resolve(taken)
        })
        connections++
        const message: Handed = { connection: id, ...(listener && { listener }) }
        child.send(message, connection as SendHandle, { keepOpen: true }, () => {})
      }),
    // Of one that could not begin, Node would signal the process group: it has the number 0 until it is given up.
    kill: () => {
      if (child.pid !== undefined) child.kill('SIGKILL')
    },
  }
  const channel = createChannel<typeof primaryCalls, typeof workerCalls>({
    ours: primaryCalls,
    theirs: workerCalls,
    handlers: handlersOf(self),
    send: (message) => void child.send(message, undefined, undefined, () => {}),
  })
  child.on('message', receive)
  child.on('error', () => {})
  if (child.stdout) relayLines(child.stdout, stdout)
  return self
}
