import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { loadAll, loadConfig, parseDuration, setting } from '../../platform/config.ts'
import type { Secret } from '../../platform/secret.ts'
import { StartupError } from '../../platform/startup-error.ts'

const schema = z.object({
  PORT: setting.port().default(3001),
  BASE_URL: setting.url('http:', 'https:'),
  GRACE: setting.duration().default(5_000),
  CLIENT_SECRET: setting.secret().optional(),
  KEY: setting.key().optional(),
  NETWORKS: setting.list().default([]),
})

test('settings are parsed into their types, and an empty variable counts as unset', () => {
  const config = loadConfig(schema, {
    BASE_URL: 'https://id.example.test',
    PORT: '',
    GRACE: '10m',
    NETWORKS: ' a, b ,',
  })
  expect(config).toEqual({ BASE_URL: 'https://id.example.test', PORT: 3001, GRACE: 600_000, NETWORKS: ['a', 'b'] })
})

test('every problem is reported at once, by name', () => {
  const load = () => loadConfig(schema, { PORT: '70000', BASE_URL: 'ftp://x', GRACE: '5', KEY: 'c2hvcnQ=' })
  expect(load).toThrow(StartupError)
  expect(load).toThrow(
    /PORT: [\s\S]*BASE_URL: must be a URL that starts with http:\/\/ or https:\/\/[\s\S]*GRACE: must be a duration[\s\S]*KEY: must be 32 bytes/,
  )
})

test('the problems of several parts are reported together, each once', () => {
  const environment = { PORT: '70000', OTHER: 'x' }
  const one = z.object({ PORT: setting.port() })
  const another = z.object({ PORT: setting.port(), OTHER: setting.integer(1, 5), NEEDED: setting.text() })
  expect(() =>
    loadAll(
      () => loadConfig(one, environment),
      () => loadConfig(another, environment),
    ),
  ).toThrow(
    /^The configuration is not valid:\n {2}PORT: must be between 0 and 65535\n {2}OTHER: must be a whole number\n {2}NEEDED: must be set$/,
  )
})

test('a secret setting redacts itself wherever it is printed', () => {
  const { CLIENT_SECRET } = loadConfig(schema, { BASE_URL: 'http://x', CLIENT_SECRET: 'hunter2' })
  const secret = CLIENT_SECRET as Secret
  expect(
    [`${secret}`, JSON.stringify({ secret }), inspect({ secret }), inspect(secret, { showHidden: true })].join(),
  ).not.toContain('hunter2')
  expect(secret.reveal()).toBe('hunter2')
})

test.each([
  ['250ms', 250],
  ['5s', 5_000],
  ['10m', 600_000],
  ['1h', 3_600_000],
  ['14d', 1_209_600_000],
  ['5', undefined],
  ['-5s', undefined],
  ['5 s', undefined],
])('duration %s is %s ms', (text, milliseconds) => {
  expect(parseDuration(text)).toBe(milliseconds)
})
