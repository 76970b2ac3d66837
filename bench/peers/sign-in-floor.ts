import type { ServerResponse } from 'node:http'
import { verify } from '@node-rs/argon2'
import type { Connection } from '../harness/database-store.ts'
import { passwordMicros } from '../harness/password-cost.ts'
import { listen, runServer } from '../harness/server.ts'
import { floorServer, formOf, parameterOf, sendTokens } from './floor-server.ts'
import { createFloorStore } from './sign-in-floor-store.ts'

/**
 * What a sign-in costs on `node:http`, pg and Argon2 when nothing is decided: the four requests with as many
 * transactions that write as ours has, each of one statement, and a read for everything that has to be looked up. It
 * checks the password, and nothing else.
 */
export interface SignInFloorSettings {
  connection: Connection
  digest: string
  redirectUri: string
}

runServer(
  async ({ connection, digest, redirectUri }: SignInFloorSettings) => {
    const { read, write, close } = await createFloorStore(connection)
    const toClient = (response: ServerResponse, state: string, headers = {}) =>
      response.writeHead(303, { ...headers, Location: `${redirectUri}?code=code&state=${state}` }).end()

    const server = floorServer({
      async '/auth'(request, response) {
        await read()
        await write()
        const state = parameterOf(request, 'state')
        if (request.headers.cookie !== undefined) return toClient(response, state)
        return response.writeHead(303, { Location: `/sign-in?state=${state}` }).end()
      },
      async '/sign-in'(request, response) {
        const state = parameterOf(request, 'state')
        await read()
        if (request.method !== 'POST') {
          const form = `<form action="/sign-in?state=${state}" method="post"><input type="password"></form>`
          return response.writeHead(200, { 'Content-Type': 'text/html' }).end(form)
        }
        const form = await formOf(request)
        await read()
        // Counted before anything is verified; then the success, then the session with its code.
        await write()
        if (!(await verify(digest, form.get('password') ?? ''))) return response.writeHead(400).end()
        await write()
        await write()
        return toClient(response, state, { 'Set-Cookie': 'session=session; Path=/' })
      },
      async '/token'(request, response) {
        await formOf(request)
        await read()
        await write()
        return sendTokens(response)
      },
    })
    return listen(server, close)
  },
  { passwordMicros },
)
