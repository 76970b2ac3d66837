'use strict'
// Exit 0 when the process of this container can serve: its admin listener says so. The port is ADMIN_PORT, or else the one of the gateway,
// the issuer or the relay, whichever runs here. It must be reachable on 127.0.0.1.
const { get } = require('node:http')

const ports = process.env.ADMIN_PORT ? [process.env.ADMIN_PORT] : [9300, 9301, 9302]

const ready = (port) =>
  new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path: '/readyz', timeout: 4000 }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.on('timeout', () => request.destroy())
    request.on('error', () => resolve(false))
  })

void Promise.all(ports.map(ready)).then((answers) => process.exit(answers.includes(true) ? 0 : 1))
