import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'
import { problemsOf } from '../../support/envoy-api.ts'

/** deploy/in-front/envoy without an Envoy: checked against Envoy's own definitions, and against each other. */

const folder = new URL('../../../deploy/in-front/envoy/', import.meta.url)
const read = (name: string) => readFile(new URL(name, folder), 'utf8')
const bootstrap = 'envoy.config.bootstrap.v3.Bootstrap'

test('Envoy knows every field of envoy.yaml, and every value of an enum', async () => {
  expect(problemsOf(bootstrap, parse(await read('envoy.yaml')))).toEqual([])
})

test.each([
  [/failure_mode_allow/, 'failure_mode_alow', /no such field/],
  [/REJECT_REQUEST/, 'REJECT_REQUESTS', /is no/],
  [/timeout: 2s/, 'timeout: 2', /no google.protobuf.Duration/],
  [/transport_api_version: V3/, 'transport_api_version: V9', /is no/],
  [/v3\.ExtAuthz$/m, 'v3.ExtAuth', /not known/],
])('and the check finds mistakes: %s', async (right, wrong, problem) => {
  const text = await read('envoy.yaml')
  expect(text).toMatch(right)
  expect(problemsOf(bootstrap, parse(text.replace(right, wrong))).join()).toMatch(problem)
})

test('what is commented out is right, too', async () => {
  const [, text] = /# (with_request_body: .*)/.exec(await read('envoy.yaml'))!
  expect(problemsOf('envoy.extensions.filters.http.ext_authz.v3.ExtAuthz', parse(text!))).toEqual([])
})

test('Envoy asks where the gateway listens, and never goes on without an answer', async () => {
  const envoy = parse(await read('envoy.yaml'))
  const gateway = parseGatewayConfig(await read('gateway-ext-authz.yaml'), { file: 'gateway.yaml', env: {} })
  const [surrogate] = envoy.static_resources.clusters
  const { address, port_value } = surrogate.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address
  expect({ host: address, port: port_value }).toEqual({ host: gateway.extAuthz!.host, port: gateway.extAuthz!.port })
  expect(gateway.trustedProxies).toContain(address)
  const [filter, ...others] = envoy.static_resources.listeners[0].filter_chains[0].filters[0].typed_config.http_filters
  expect(filter.typed_config).toMatchObject({
    failure_mode_allow: false,
    grpc_service: { envoy_grpc: { cluster_name: surrogate.name } },
  })
  expect(others.map(({ name }: { name: string }) => name)).toEqual(['envoy.filters.http.router'])
})

test('the files for Kubernetes are YAML, name one port, and none fails open', async () => {
  const names = (await readdir(folder)).filter((name) => !['envoy.yaml', 'gateway-ext-authz.yaml'].includes(name))
  expect(names.sort()).toEqual(['contour.yaml', 'envoy-gateway.yaml', 'gateway-api.yaml', 'gloo.yaml', 'istio.yaml'])
  for (const name of names) {
    const text = await read(name)
    for (const document of parseAllDocuments(text)) {
      expect(document.errors, name).toEqual([])
      expect(document.toJS(), name).toMatchObject({ apiVersion: expect.any(String), kind: expect.any(String) })
    }
    expect(text, name).toMatch(/port: 9191|servicePort: 9191/i)
    expect(text, name).toMatch(/Not run by us/)
    expect(text, name).not.toMatch(/(?:failOpen|failureModeAllow): true/)
  }
})
