import { connect, type Socket } from 'node:net'
import { answerReader, type HttpAnswer } from './answer-reader.ts'

/** A connection that is kept, one request at a time, bytes as they are. */
export type Wire = { send: (request: string) => Promise<HttpAnswer>; close: () => void }

/** In ms. Servers close connections that nobody uses: one that was idle for this long may be closing. */
const idleMs = 1_000

interface Waiting {
  request: string
  /** The connection was idle for long. */
  mayBeClosing: boolean
  resolve: (answer: HttpAnswer) => void
  reject: (error: Error) => void
}

export const createWire = (port: number): Wire => {
  let socket: Socket | undefined
  let waiting: Waiting | undefined
  let usedAt = Number.NaN

  /** Anew when the server closed the last one, which was idle for long. */
  const open = (): Socket => {
    const reader = answerReader()
    const opened = connect({ port, host: '127.0.0.1', noDelay: true })
    opened.on('data', (chunk: Buffer) => {
      try {
        if (waiting) waiting.mayBeClosing = false
        const answer = reader.push(chunk)
        if (!answer) return
        usedAt = performance.now()
        waiting?.resolve(answer)
        waiting = undefined
      } catch (error) {
        waiting?.reject(error as Error)
      }
    })
    const onEnd = (error: Error) => {
      if (socket !== opened) return
      socket = undefined
      // RFC 9112 §9.3.1: it closed before it saw the request, as happens when the machine pauses.
      if (waiting?.mayBeClosing) {
        waiting.mayBeClosing = false
        socket = open()
        socket.write(waiting.request)
      } else waiting?.reject(error)
    }
    opened.on('error', onEnd)
    opened.on('close', () => onEnd(new Error('the server closed a connection without an answer')))
    return opened
  }
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        const mayBeClosing = socket !== undefined && performance.now() - usedAt > idleMs
        waiting = { request, mayBeClosing, resolve, reject }
        socket ??= open()
        socket.write(request)
      }),
    close: () => socket?.destroy(),
  }
}
