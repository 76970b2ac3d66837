import { createServer } from 'node:http'
import { listen, runServer } from '../harness/server.ts'

/** A collector that takes whatever it is sent: an export is answered by a message without members, which is no bytes. */
let exports = 0

runServer(
  () =>
    listen(
      createServer((request, response) => {
        request.resume()
        request.on('end', () => {
          if (request.url === '/v1/traces') exports += 1
          response.writeHead(200, { 'content-type': 'application/x-protobuf', 'content-length': 0 }).end()
        })
      }),
    ),
  { exports: () => exports },
)
