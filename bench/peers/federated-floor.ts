import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto'
import { request } from 'undici'
import type { Connection } from '../harness/database-store.ts'
import { listen, runServer } from '../harness/server.ts'
import type { ProviderAddress } from '../targets/identity-provider.ts'
import { floorServer, formOf, parameterOf, sendTokens } from './floor-server.ts'
import { createFloorStore } from './sign-in-floor-store.ts'

/**
 * What a sign-in by an identity provider costs on `node:http`, undici and pg when nothing is decided: the five requests
 * with as many transactions that write as ours has, each of one statement, a read for everything that has to be looked
 * up, and the two requests to the provider. It checks the signature of the ID token, and nothing else.
 */
export interface FederatedFloorSettings {
  connection: Connection
  provider: ProviderAddress
  redirectUri: string
  connectorId: string
}

// A verifier that is everybody's, of the form that the provider asks for.
const verifier = 'v'.repeat(43)
const challenge = createHash('sha256').update(verifier).digest('base64url')

runServer(async ({ connection, provider, redirectUri, connectorId }: FederatedFloorSettings) => {
  const { read, write, close } = await createFloorStore(connection)
  const get = async <Answer>(url: string, options = {}) =>
    (await request(url, options).then(({ body }) => body.json())) as Answer
  const metadata = await get<Record<string, string>>(`${provider.issuer}/.well-known/openid-configuration`)
  const { keys } = await get<{ keys: JsonWebKey[] }>(metadata['jwks_uri']!)
  const key = createPublicKey({ key: keys[0]!, format: 'jwk' })
  const authorization = `Basic ${Buffer.from(`${provider.clientId}:${provider.clientSecret}`).toString('base64')}`
  const callback = (origin: string) => `http://${origin}/callback`

  const server = floorServer({
    async '/auth'(incoming, response) {
      await read()
      await write()
      return response.writeHead(303, { Location: `/sign-in?state=${parameterOf(incoming, 'state')}` }).end()
    },
    async '/sign-in'(incoming, response) {
      const state = parameterOf(incoming, 'state')
      await read()
      await read()
      if (incoming.method !== 'POST') {
        const button = `<button name="choice" value="provider:${connectorId}">`
        const form = `<form action="/sign-in?state=${state}" method="post">${button}</form>`
        return response.writeHead(200, { 'Content-Type': 'text/html' }).end(form)
      }
      await formOf(incoming)
      await write()
      const asked = new URLSearchParams({
        ...{ response_type: 'code', client_id: provider.clientId, scope: 'openid', state, nonce: 'nonce' },
        ...{ redirect_uri: callback(incoming.headers.host ?? ''), code_challenge: challenge },
        code_challenge_method: 'S256',
      })
      return response.writeHead(303, { Location: `${metadata['authorization_endpoint']}?${asked}` }).end()
    },
    async '/callback'(incoming, response) {
      await read()
      await read()
      await write()
      const tokens = await get<{ id_token: string; access_token: string }>(metadata['token_endpoint']!, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({
          ...{ grant_type: 'authorization_code', code: parameterOf(incoming, 'code'), code_verifier: verifier },
          redirect_uri: callback(incoming.headers.host ?? ''),
        }).toString(),
      })
      const [header, payload, signature = ''] = tokens.id_token.split('.')
      const isSigned = verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))
      if (!isSigned) return response.writeHead(400).end()
      await get(metadata['userinfo_endpoint']!, { headers: { authorization: `Bearer ${tokens.access_token}` } })
      await read()
      // What was proven; then the session with its code.
      await write()
      await write()
      return response
        .writeHead(303, {
          'Set-Cookie': 'session=session; Path=/',
          Location: `${redirectUri}?code=code&state=${parameterOf(incoming, 'state')}`,
        })
        .end()
    },
    async '/token'(incoming, response) {
      await formOf(incoming)
      await read()
      await write()
      return sendTokens(response)
    },
  })
  return listen(server, close)
})
