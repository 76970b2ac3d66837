import type { Connection } from '../harness/database-store.ts'
import { send } from '../harness/send.ts'
import type { Server, Stage } from '../harness/stage.ts'

/** What each part of the comparison begins with. */
export interface PeopleWorld {
  stage: Stage
  postgres: Connection
  /** Of everybody's password. */
  digest: string
  rounds: number
}

interface Call {
  token: string
  body?: object
  headers?: readonly string[]
  /** Statuses that are answered instead of thrown. Default: those below 300. */
  accept?: readonly number[]
}

/** A call of an API of the issuer with a bearer token, on a connection of its own. */
export const callApi = async (
  { port }: Pick<Server, 'port'>,
  method: string,
  path: string,
  { token, body, headers = [], accept = [] }: Call,
): Promise<{ status: number; body: Record<string, unknown> }> => {
  const text = body === undefined ? '' : JSON.stringify(body)
  const request = [
    `${method} /api${path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    `authorization: Bearer ${token}`,
    ...headers,
    ...(body === undefined ? [] : ['content-type: application/json']),
    `content-length: ${Buffer.byteLength(text)}`,
    '',
    text,
  ]
  const answer = await send(port, request.join('\r\n'))
  const answered = answer.body.toString()
  if (answer.status >= 300 && !accept.includes(answer.status))
    throw new Error(`${method} ${path}: ${answer.status} ${answered}`)
  return { status: answer.status, body: answered === '' ? {} : JSON.parse(answered) }
}
