import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadIssuerConfig } from '../../issuer/config.ts'
import { loadRelayConfig } from '../../relay/config.ts'
import { startProcess } from '../support/process.ts'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-outbox-'))
})
afterEach(() => rm(folder, { recursive: true }))

const messages = (...args: string[]) =>
  startProcess(process.execPath, [surrogate, 'messages', ...args], {
    cwd: folder,
    env: { MESSAGE_OUTBOX: join(folder, 'messages.jsonl') },
  })
const line = (code: string, more: object = {}) =>
  `${JSON.stringify({ at: '2026-11-23T00:00:00.000Z', channel: 'email', to: 'ada@example.com', type: 'SignIn', subject: 'Your code', text: `It is ${code}.\n`, code, ...more })}\n`

test('messages of development are printed with their codes, and nothing in them steers the terminal', async () => {
  const hostile = line('654321', { subject: 'a\u001b[2Jb\u202e', text: 'x\r\nForged\u0007' })
  await writeFile(join(folder, 'messages.jsonl'), `${line('123456')}${hostile}no JSON\n`)
  const process = messages()
  expect((await process.exited).code).toBe(0)
  expect(process.output()).toContain('── SignIn by email to ada@example.com, 2026-11-23T00:00:00.000Z')
  expect(process.output()).toContain('It is 123456.')
  expect(process.output()).toContain('a[2Jb')
  expect(process.output()).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/)
})

test('with --follow what comes is printed until a signal, also when the file is made later', async () => {
  const process = messages('--follow')
  await appendFile(join(folder, 'messages.jsonl'), line('111111'))
  await process.waitFor(/It is 111111\./)
  const half = line('222222')
  await appendFile(join(folder, 'messages.jsonl'), half.slice(0, 40))
  await appendFile(join(folder, 'messages.jsonl'), half.slice(40) + line('333333'))
  await process.waitFor(/It is 222222\.[\s\S]*It is 333333\./)
  process.signal('SIGTERM')
  expect((await process.exited).code).toBe(0)
})

test('without messages it says where it looked', async () => {
  const process = messages()
  expect((await process.exited).code).toBe(3)
  expect(process.output()).toContain(join(folder, 'messages.jsonl'))
})

test('what leaves codes in readable files does not start in production', () => {
  const key = Buffer.alloc(32).toString('base64')
  for (const insecure of [{ MOCK_CONNECTORS: 'true' }, { MESSAGE_OUTBOX: 'x' }]) {
    const [name] = Object.keys(insecure)
    const environment = { ...insecure, NODE_ENV: 'production', KEY_ENCRYPTION_KEY: key }
    expect(() => loadIssuerConfig(environment)).toThrow(`${name} must not be set with NODE_ENV=production`)
    expect(() => loadRelayConfig(environment)).toThrow(`${name} must not be set with NODE_ENV=production`)
    expect(loadRelayConfig({ ...environment, NODE_ENV: 'test' }).messages).toMatchObject({
      ...('MESSAGE_OUTBOX' in insecure ? { outbox: 'x' } : { mockFolder: '.' }),
    })
  }
})
