import { createServer, type Socket } from 'node:net'
import { openPort } from '../../platform/http/http-server.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { WorkerProcess } from './fork-worker.ts'
import type { Handed } from './taken-connections.ts'

/**
 * A port of the gateway. Each connection goes, unread, to the worker that has the fewest. This process keeps its copy
 * until the worker has it; when the worker ends before that, another one gets it.
 */
export interface HandOut {
  /** Throws `StartupError` when the port is taken. */
  open(address: { host: string; port: number; setting: string; tls: object | undefined }): Promise<{
    url: string
    port: number
  }>
  /** The worker takes connections from now on. */
  join(worker: WorkerProcess): void
  leave(worker: WorkerProcess): void
  /** Takes no more; resolves when those that were taken are with workers. */
  close(): Promise<void>
}

/** So many connections may wait for a worker, beside those in the kernel's own queue; further ones are broken off. */
const mostWaiting = 1_024
/** To one worker: few, as they wait if it stands still, and other messages to it wait behind them. */
const mostOnTheWay = 4
/** How long connections may wait for a worker once no more are taken, in ms. */
const lastChanceMs = 10_000

export const createHandOut = (options: {
  metrics: Metrics
  /** Default: the public one. */
  listener?: Handed['listener']
}): HandOut => {
  const { metrics, listener } = options
  /** Those that have waited longest for a connection are first. */
  const members = new Set<WorkerProcess>()
  /** By worker: connections that are on their way. */
  const onTheWay = new Map<WorkerProcess, number>()
  const waiting: Socket[] = []
  const broken = metrics.counter(
    'surrogate_gateway_connections_dropped_total',
    'Connections that were broken off because no worker took them',
  )
  let drained: (() => void) | undefined

  const drop = (socket: Socket) => {
    broken.inc()
    socket.destroy()
  }

  const count = (worker: WorkerProcess, change: 1 | -1) => {
    const number = (onTheWay.get(worker) ?? 0) + change
    if (number > 0) onTheWay.set(worker, number)
    else onTheWay.delete(worker)
  }

  const leastUsed = (): WorkerProcess | undefined => {
    let best: WorkerProcess | undefined
    for (const worker of members) {
      if (!worker.alive || (onTheWay.get(worker) ?? 0) >= mostOnTheWay) continue
      if (!best || worker.connections < best.connections) best = worker
    }
    return best
  }

  /** Those whose clients have gone: nobody would read an answer, and others wait behind them. */
  const forgetGone = () => {
    while (waiting[0] && handleOf(waiting[0]) === undefined) waiting.shift()!.destroy()
  }

  const handOver = async (socket: Socket, worker: WorkerProcess) => {
    count(worker, 1)
    if (members.delete(worker)) members.add(worker)
    const handle = handleOf(socket)
    // It stays open meanwhile: a handle that is closed on its way keeps Node from sending whatever comes after it.
    const taken = handle ? await worker.hand(handle, listener) : true
    count(worker, -1)
    if (taken) socket.destroy()
    else if (!socket.destroyed) waiting.unshift(socket)
    dispatch()
  }

  const dispatch = () => {
    for (;;) {
      forgetGone()
      const worker = waiting.length > 0 ? leastUsed() : undefined
      if (!worker) break
      void handOver(waiting.shift()!, worker)
    }
    if (!drained) return
    // Nobody takes the place of a worker any more.
    if (members.size === 0) waiting.splice(0).forEach(drop)
    if (waiting.length === 0 && onTheWay.size === 0) drained()
  }

  const server = createServer({ pauseOnConnect: true }, (socket) => {
    if (waiting.length >= mostWaiting) forgetGone()
    if (waiting.length >= mostWaiting) return drop(socket)
    waiting.push(socket)
    dispatch()
  })

  return {
    open: (address) => openPort(server, { name: listener ? 'ext_authz' : 'the gateway', ...address }),
    join(worker) {
      members.add(worker)
      dispatch()
    },
    leave(worker) {
      members.delete(worker)
      dispatch()
    },
    close() {
      server.close()
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          waiting.splice(0).forEach(drop)
          resolve()
        }, lastChanceMs)
        drained = () => {
          clearTimeout(timer)
          resolve()
        }
        dispatch()
      })
    },
  }
}

interface Handle {
  /** 0, or the number of an error. */
  getpeername(name: object): number
}

/**
 * What Node hands to another process without following there what becomes of it. A `Socket` would be read by the other
 * side as soon as it arrives. Undefined: the connection has ended, or its client has reset it.
 */
const handleOf = (socket: Socket): object | undefined => {
  const { _handle: handle } = socket as unknown as { _handle: Handle | null }
  return handle?.getpeername({}) === 0 ? handle : undefined
}
