import { request } from 'undici'
import { z } from 'zod'

/** Calls the Management API as any integrator does; a call that is refused rejects with what the service said. */
export interface ManagementClient {
  get(path: string): Promise<unknown>
  post(path: string, body: unknown): Promise<unknown>
  patch(path: string, body: unknown): Promise<unknown>
  delete(path: string): Promise<unknown>
}

const tokenAnswer = z.object({ access_token: z.string() })

export const basic = ({ clientId, clientSecret }: { clientId: string; clientSecret: string }) =>
  `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`

export const createManagementClient = async (options: {
  issuerUrl: string
  clientId: string
  clientSecret: string
}): Promise<ManagementClient> => {
  const { issuerUrl } = options
  const answer = await request(`${issuerUrl}/oidc/token`, {
    method: 'POST',
    headers: { authorization: basic(options), 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      resource: `${issuerUrl}/api`,
      scope: 'all',
    }).toString(),
  })
  if (answer.statusCode !== 200)
    throw new Error(`No management token: ${answer.statusCode} ${await answer.body.text()}`)
  const { access_token } = tokenAnswer.parse(await answer.body.json())

  const call = async (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown) => {
    const { statusCode, body: received } = await request(`${issuerUrl}/api${path}`, {
      method,
      headers: {
        authorization: `Bearer ${access_token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    })
    const text = await received.text()
    if (statusCode >= 300) throw new Error(`${method} ${path} answered ${statusCode}: ${text}`)
    return text === '' ? undefined : (JSON.parse(text) as unknown)
  }
  return {
    get: (path) => call('GET', path),
    post: (path, body) => call('POST', path, body),
    patch: (path, body) => call('PATCH', path, body),
    delete: (path) => call('DELETE', path),
  }
}
