import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { answerReader, type HttpAnswer } from './answer-reader.ts'
import { answerCalls } from './calls.ts'
import { driveHttp2 } from './http2-driver.ts'

/**
 * The load: a fixed number of keep-alive connections, each sending its next request when the answer to the last one is
 * there (closed loop). Raw sockets and requests prepared as bytes keep it cheaper than any server it drives. Every
 * answer is checked; one wrong answer fails the round.
 */
export type Load = {
  port: number
  connections: number
  /** With HTTP/2: requests at a time on one connection; there are fewer connections then. Default 1. */
  streams?: number | undefined
  /** The round ends after this long, or when `requests` are used up and may not be repeated. */
  seconds: number
  /** Whole requests as they go over the wire, a character for each byte. */
  requests: string[]
  /** Each request is sent at most once: its credential is single use. */
  once: boolean
  expected: Expected
  /** Default `http`. Certificates are not checked. */
  protocol?: Protocol | undefined
}

/** `h2c` is HTTP/2 in the clear. */
export type Protocol = 'http' | 'https' | 'h2' | 'h2c'

/** Any of several statuses where chance decides between them. */
export type Expected = { status: number | readonly number[]; bodyIncludes: string }

export type LoadResult = {
  requests: number
  seconds: number
  p50Ms: number
  p95Ms: number
  p99Ms: number
  /** CPU microseconds of the generator itself. */
  cpuMicros: number
}

const run = async (load: Load): Promise<LoadResult> => {
  const requests = load.requests.map((request) => Buffer.from(request, 'latin1'))
  const latencies: number[] = []
  let taken = 0

  const cpuBefore = process.cpuUsage()
  const started = performance.now()
  const deadline = started + load.seconds * 1000
  const nextRequest = (): Buffer | undefined => {
    if (performance.now() >= deadline) return undefined
    if (load.once && taken === requests.length) return undefined
    return requests[taken++ % requests.length]
  }
  const { port, protocol = 'http', streams = 1 } = load
  const drive: Drive = {
    ...{ port, protocol, streams, nextRequest, latencies },
    check: (answer) => assertExpected(answer, load.expected),
  }
  const driveOne = () => (drive.protocol.startsWith('h2') ? driveHttp2(drive) : driveHttp1(drive))
  await Promise.all(Array.from({ length: Math.ceil(load.connections / streams) }, driveOne))
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpuBefore)

  latencies.sort((a, b) => a - b)
  const percentile = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]
  return {
    requests: latencies.length,
    seconds,
    p50Ms: percentile(0.5) ?? Number.NaN,
    p95Ms: percentile(0.95) ?? Number.NaN,
    p99Ms: percentile(0.99) ?? Number.NaN,
    cpuMicros: user + system,
  }
}

export type Drive = {
  port: number
  protocol: Protocol
  streams: number
  nextRequest: () => Buffer | undefined
  /** Throws when it is not what was expected. */
  check: (answer: HttpAnswer) => void
  latencies: number[]
}

/** One connection, until there is no next request. */
const driveHttp1 = ({ port, protocol, nextRequest, check, latencies }: Drive): Promise<void> =>
  new Promise((resolve, reject) => {
    const reader = answerReader()
    let sentAt = 0
    const place = { port, host: '127.0.0.1', noDelay: true }
    const socket: Socket =
      protocol === 'https'
        ? connectTls({ ...place, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }, () => send())
        : connect(place, () => send())

    const finish = (error?: Error) => {
      socket.removeAllListeners('close')
      socket.destroy()
      if (error) reject(error)
      else resolve()
    }
    const send = () => {
      const request = nextRequest()
      if (!request) return finish()
      sentAt = performance.now()
      socket.write(request)
    }
    socket.on('data', (chunk: Buffer) => {
      try {
        const answer = reader.push(chunk)
        if (!answer) return
        latencies.push(performance.now() - sentAt)
        check(answer)
        send()
      } catch (error) {
        finish(error as Error)
      }
    })
    socket.on('error', finish)
    socket.on('close', () => finish(new Error('the server closed a connection that should stay open')))
  })

const assertExpected = ({ status, head, body }: HttpAnswer, expected: Expected): void => {
  if ([expected.status].flat().includes(status) && body.includes(expected.bodyIncludes)) return
  throw new Error(
    `expected ${expected.status} with ${expected.bodyIncludes}, got:\n${head}\n\n${body.toString().slice(0, 500)}`,
  )
}

answerCalls({ start: () => {}, run })
