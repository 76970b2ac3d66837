import { createServer } from 'node:http'
import { listen, runServer } from '../harness/server.ts'

/**
 * What stands behind every gateway: an API that answers 1 kB of JSON, and the key set and discovery document of the
 * issuer of the bench token. A POST whose body did not arrive whole is answered 422, which fails the round.
 */
export type UpstreamSettings = {
  jwks: object
  /** Bytes the body of a POST must have. */
  postBytes: number
}

const items = Array.from({ length: 10 }, (_, index) => ({ sku: `sku-${index}`, quantity: index, price: '19.90 EUR' }))
const order = { id: '42', status: 'shipped', currency: 'EUR', items, note: 'x'.repeat(420) }
const orderBody: Buffer = Buffer.from(JSON.stringify(order))

const orderHeaders = { 'content-type': 'application/json', 'content-length': orderBody.length }

runServer(({ jwks, postBytes }: UpstreamSettings) => {
  const documents = new Map<string, (origin: string) => object>([
    ['/jwks', () => jwks],
    ['/.well-known/openid-configuration', (origin) => ({ issuer: origin, jwks_uri: `${origin}/jwks` })],
  ])
  const server = createServer((request, response) => {
    const document = documents.get(request.url ?? '')
    if (document) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(document(`http://${request.headers.host}`)))
      return
    }
    let received = 0
    request.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    request.on('end', () => {
      response.writeHead(received === (request.method === 'POST' ? postBytes : 0) ? 200 : 422, orderHeaders)
      response.end(orderBody)
    })
  })
  return listen(server)
})
