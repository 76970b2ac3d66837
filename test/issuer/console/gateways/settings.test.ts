import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { loadIssuerConfig } from '../../../../issuer/config.ts'
import { startTestConsole } from '../../../support/console.ts'

const load = (environment: Record<string, string>) =>
  loadIssuerConfig({ KEY_ENCRYPTION_KEY: randomBytes(32).toString('base64'), ...environment }).console

test('gateways are names with origins', () => {
  expect(load({})).toMatchObject({ gateways: [], gatewaysAudience: undefined })
  expect(
    load({
      CONSOLE_GATEWAYS: 'edge-1=https://10.0.0.5:9303, near=http://127.0.0.1:9303/',
      CONSOLE_GATEWAYS_AUDIENCE: 'https://gateway.test/inspection',
    }),
  ).toMatchObject({
    gateways: [
      { name: 'edge-1', url: 'https://10.0.0.5:9303' },
      { name: 'near', url: 'http://127.0.0.1:9303' },
    ],
    gatewaysAudience: 'https://gateway.test/inspection',
  })
})

test.each([
  'https://10.0.0.5:9303',
  'decisions=https://a.test',
  'sessions=https://a.test',
  'Edge=https://a.test',
  'edge=https://a.test/inspection',
  'edge=https://user:secret@a.test',
  'edge=ftp://a.test',
  'edge=https://a.test?x=1',
  'edge=https://a.test,edge=https://b.test',
  Array.from({ length: 17 }, (_, index) => `edge-${index}=https://a.test`).join(','),
])('%s is refused, without being repeated', (value) => {
  expect(() => load({ CONSOLE_GATEWAYS: value })).toThrow(
    /CONSOLE_GATEWAYS: must (not )?be |CONSOLE_GATEWAYS: must not have/,
  )
  expect(() => load({ CONSOLE_GATEWAYS: value })).not.toThrow(/user:secret/)
})

test('plain http beyond this machine has to be meant', () => {
  const CONSOLE_GATEWAYS = 'edge=http://10.0.0.5:9303'
  expect(() => load({ CONSOLE_GATEWAYS })).toThrow('CONSOLE_GATEWAYS_ALLOW_HTTP=true')
  expect(load({ CONSOLE_GATEWAYS, CONSOLE_GATEWAYS_ALLOW_HTTP: 'true' })?.gateways).toHaveLength(1)
})

test('tokens for gateways are never good for the Management API', async () => {
  const gatewaysAudience = 'https://management.test'
  const console = { isOn: true, port: undefined, url: undefined, gatewaysAudience }
  await expect(startTestConsole({ config: { console, managementApiIndicators: [gatewaysAudience] } })).rejects.toThrow(
    'CONSOLE_GATEWAYS_AUDIENCE is the Management API',
  )
})
