import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An issuer's introspection endpoint (RFC 7662) that notes what it is asked. */
export interface IntrospectionEndpoint {
  readonly url: string
  /** Forms that arrived, in their order. */
  readonly asked: { token: string; hint: string | null; authorization: string | undefined }[]
  /** What it says of each token beside `active: true`; of all others `active: false`. */
  readonly tokens: Map<string, object>
  /** Takes the place of the answer from now on. */
  answer: RequestListener | undefined
  /** From now on answers wait; the function that it returns lets them go. */
  hold(): () => void
  close(): Promise<void>
}

export const startIntrospectionEndpoint = async (): Promise<IntrospectionEndpoint> => {
  let open: Promise<void> = Promise.resolve()
  const self = {
    asked: [] as IntrospectionEndpoint['asked'],
    tokens: new Map<string, object>(),
    answer: undefined as RequestListener | undefined,
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>()
      open = promise
      return resolve
    },
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const form = new URLSearchParams(Buffer.concat(chunks).toString())
    const token = form.get('token') ?? ''
    self.asked.push({ token, hint: form.get('token_type_hint'), authorization: request.headers.authorization })
    await open
    if (self.answer) return self.answer(request, response)
    const members = self.tokens.get(token)
    const body = members ? { active: true, ...members } : { active: false }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(self, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/introspect`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  })
}
