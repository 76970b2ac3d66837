import { connect, type Socket } from 'node:net'
import { answerReader, type HttpAnswer } from './answer-reader.ts'

/** A connection that is kept, one request at a time, bytes as they are. */
export type Wire = { send: (request: string) => Promise<HttpAnswer>; close: () => void }

export const createWire = (port: number): Wire => {
  let socket: Socket | undefined
  let waiting: { resolve: (answer: HttpAnswer) => void; reject: (error: Error) => void } | undefined

  /** Anew when the server closed the last one, which was idle for long. */
  const open = (): Socket => {
    const reader = answerReader()
    const opened = connect({ port, host: '127.0.0.1', noDelay: true })
    opened.on('data', (chunk: Buffer) => {
      try {
        const answer = reader.push(chunk)
        if (answer) waiting?.resolve(answer)
      } catch (error) {
        waiting?.reject(error as Error)
      }
    })
    opened.on('error', (error) => waiting?.reject(error))
    opened.on('close', () => {
      socket = undefined
      waiting?.reject(new Error('the server closed a connection without an answer'))
    })
    return opened
  }
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        socket ??= open()
        socket.write(request)
      }),
    close: () => socket?.destroy(),
  }
}
