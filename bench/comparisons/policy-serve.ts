import { randomUUID } from 'node:crypto'
import type { Comparison, Contestant, Prepared } from '../harness/comparison.ts'
import { underTest } from '../harness/process.ts'
import { sendExpecting } from '../harness/send.ts'
import type { Server, Stage } from '../harness/stage.ts'

/**
 * A decision by OPA's Data API, of OPA's server and of ours over the same rules: the scopes of a route and a list of
 * subjects that are locked out. Once the same input every time, once another subject and order in each.
 */
export const policyServe: Comparison = {
  name: 'policy-serve',
  title: 'Policy servers, POST /v1/data with 300 bytes of input',
  prepare: (stage) => prepare(stage),
}

const files = {
  'orders.rego': `
package orders

# METADATA
# entrypoint: true
default allow := false

allow if {
	some route in data.routes
	input.method in route.methods
	startswith(input.path, route.prefix)
	every scope in route.scopes { scope in input.token.scopes }
	not input.token.sub in data.locked
}
`,
  'data.json': JSON.stringify({
    routes: [
      { prefix: '/orders/', methods: ['GET', 'HEAD'], scopes: ['read:orders'] },
      { prefix: '/orders/', methods: ['POST', 'PUT', 'DELETE'], scopes: ['write:orders'] },
    ],
    locked: ['user-666', 'user-667'],
  }),
}

const servers = [
  { name: 'OPA', file: new URL('../peers/opa-data-api.ts', import.meta.url) },
  { name: 'Surrogate', file: new URL('../targets/policy-serve.ts', import.meta.url) },
]
const [repeated, different] = ['the same input', 'inputs all different'] as const

const prepare = async (stage: Stage): Promise<Prepared> => {
  const contestants: Contestant[] = []
  for (const kind of [repeated, different]) {
    for (const { name, file } of servers) {
      const server = await stage.serve(file, underTest, { files })
      contestants.push(contestant({ name: `${name}, ${kind}`, server, once: kind === different }))
    }
  }
  const ratios = [repeated, different].map((kind) => ({ of: `OPA, ${kind}`, to: `Surrogate, ${kind}`, atLeast: 2 }))
  return { contestants, ratios }
}

const contestant = ({ name, server, once }: { name: string; server: Server; once: boolean }): Contestant => {
  const { port } = server
  return {
    ...{ name, server, once },
    requests: (count) =>
      once
        ? Array.from({ length: count }, () => question(port, { sub: randomUUID(), order: randomUUID() }))
        : [question(port, {})],
    expected: { status: 200, bodyIncludes: '"result":true' },
    preflight: async () => {
      const denied = [{ sub: 'user-666' }, { scopes: ['write:orders'] }, { method: 'DELETE' }]
      for (const asked of denied) {
        const answer = await sendExpecting(port, question(port, asked), 200)
        if (!answer.includes('"result":false')) throw new Error(`${name} answers ${answer} to ${JSON.stringify(asked)}`)
      }
    },
  }
}

const question = (
  port: number,
  { method = 'GET', order = '42', sub = 'user-1', scopes = ['read:orders', 'read:customers'] },
): string => {
  const token = { iss: 'https://login.example.test', sub, scopes, client_id: 'web-shop', act: null }
  const body = JSON.stringify({ input: { method, path: `/orders/${order}`, token, address: '203.0.113.9' } })
  const lines = [
    ...['POST /v1/data/orders/allow HTTP/1.1', `host: 127.0.0.1:${port}`],
    ...['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`],
  ]
  return [...lines, '', body].join('\r\n')
}
