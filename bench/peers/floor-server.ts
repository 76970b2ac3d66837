import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

export type FloorEndpoints = Readonly<
  Record<string, (request: IncomingMessage, response: ServerResponse) => Promise<unknown>>
>

/** By path, without its query; nothing else is looked at. */
export const floorServer = (endpoints: FloorEndpoints): Server =>
  createServer((request, response) => {
    const endpoint = endpoints[request.url?.split('?', 1)[0] ?? '']
    if (!endpoint) return response.writeHead(404).end()
    endpoint(request, response).catch((error) => {
      console.error(error)
      response.writeHead(500).end()
    })
  })

export const parameterOf = ({ url = '' }: IncomingMessage, name: string): string =>
  new URLSearchParams(url.slice(url.indexOf('?') + 1)).get(name) ?? ''

export const formOf = async (request: IncomingMessage): Promise<URLSearchParams> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return new URLSearchParams(Buffer.concat(chunks).toString())
}

export const sendTokens = (response: ServerResponse): ServerResponse =>
  response
    .writeHead(200, { 'Content-Type': 'application/json' })
    .end(JSON.stringify({ access_token: '', id_token: '', refresh_token: '' }))
