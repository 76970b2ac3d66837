import { connect } from 'node:net'
import { answerReader, type HttpAnswer } from './answer-reader.ts'

/** Sends one request, bytes as they are, on a connection of its own. */
export const send = (port: number, request: string): Promise<HttpAnswer> =>
  new Promise((resolve, reject) => {
    const reader = answerReader()
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(request))
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the server closed the connection without an answer')))
    socket.on('data', (chunk: Buffer) => {
      const answer = reader.push(chunk)
      if (!answer) return
      resolve(answer)
      socket.destroy()
    })
  })

/** Sends it and throws unless the status is one of `statuses`: who skips a check must not win a comparison. */
export const sendExpecting = async (port: number, request: string, ...statuses: number[]): Promise<string> => {
  const { status, body } = await send(port, request)
  if (statuses.includes(status)) return body.toString()
  throw new Error(`expected ${statuses.join(' or ')}, got ${status} ${body} for:\n${request}`)
}
