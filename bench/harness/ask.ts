import { connect, type Socket } from 'node:net'
import { answerReader } from './answer-reader.ts'

/**
 * A request now and then beside a load, one at a time, answered with its status. `fetch` would cost a millisecond each
 * time, which those who are measured on the same processors notice.
 */
export type Asker = { ask: (path: string) => Promise<number>; close: () => void }

export const createAsker = (port: number): Asker => {
  let socket: Socket | undefined
  let waiting: { resolve: (status: number) => void; reject: (error: Error) => void } | undefined

  /** Anew when the server closed the last one, which was idle for long. */
  const open = (): Socket => {
    const reader = answerReader()
    const opened = connect({ port, host: '127.0.0.1', noDelay: true })
    opened.on('data', (chunk: Buffer) => {
      const answer = reader.push(chunk)
      if (answer) waiting?.resolve(answer.status)
    })
    opened.on('error', (error) => waiting?.reject(error))
    opened.on('close', () => {
      socket = undefined
      waiting?.reject(new Error('the server closed a connection without an answer'))
    })
    return opened
  }
  return {
    ask: (path) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        socket ??= open()
        socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`)
      }),
    close: () => socket?.destroy(),
  }
}
