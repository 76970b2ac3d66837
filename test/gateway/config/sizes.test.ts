import { expect, test } from 'vitest'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'

const parse = (headerSize: string, bodySize: string, bufferSize: string) =>
  parseGatewayConfig(
    `version: 1
issuers: [{ issuer: https://id.test }]
upstreams: { api: { url: https://api.test } }
limits: { headerSize: ${headerSize}, bodySize: ${bodySize} }
accessLog: { to: stdout, bufferSize: ${bufferSize} }
routes: [{ id: a, path: /a, audience: [a], upstream: api, bodySize: ${bodySize} }]
`,
    { file: 'gateway.yaml', env: {} },
  )

test('every size is a number of bytes, or has a unit', () => {
  const units = parse('16kB', '8GB', '1MB')
  const bytes = parse('16384', '8589934592', '1048576')
  for (const { limits, accessLog, routes } of [units, bytes]) {
    expect(limits).toMatchObject({ headerSize: 16_384, bodySize: 8_589_934_592 })
    expect(accessLog).toMatchObject({ bufferSize: 1_048_576 })
    expect(routes[0]).toMatchObject({ bodySize: 8_589_934_592 })
  }
  expect(() => parse('1kB', '1MB', '1MB')).toThrow(
    'gateway.yaml:4:23: limits.headerSize: must be from 4096 to 262144 bytes',
  )
})
