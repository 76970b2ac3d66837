import { appendFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { codesFrom } from '../../testing/message-codes.ts'

const line = (at: string, code?: string, to = 'ada@example.test') => `${JSON.stringify({ at, to, code })}\n`
const since = new Date('2026-01-01T10:00:01.000Z')

const folder = async () => {
  const path = await mkdtemp(join(tmpdir(), 'surrogate-test-'))
  onTestFinished(() => rm(path, { recursive: true }))
  return path
}

test('a code is the newest that came since, and none is answered twice', async () => {
  const file = join(await folder(), 'messages.jsonl')
  await appendFile(file, line('2026-01-01T10:00:00.000Z', '111111'))
  const next = codesFrom(file, { since })
  const first = next()
  await appendFile(file, `${line('2026-01-01T10:00:02.000Z', '222222') + line('2026-01-01T10:00:03.000Z')}{"at": "2026`)
  expect(await first).toBe('222222')
  const second = next()
  await appendFile(file, `-01-01T10:00:04.000Z", "to": "ada@example.test", "code": "333333"}\n`)
  expect(await second).toBe('333333')
})

test('a file that is not there yet is waited for', async () => {
  const file = join(await folder(), 'messages.jsonl')
  const next = codesFrom(file, { since })()
  await appendFile(file, line('2026-01-01T10:00:02.000Z', '222222'))
  expect(await next).toBe('222222')
})

test('people who sign in at the same time get their own codes', async () => {
  const file = join(await folder(), 'messages.jsonl')
  const ofAda = codesFrom(file, { since, to: 'Ada@example.test' })
  const ofGrace = codesFrom(file, { since, to: '+49 170 1234567' })
  await appendFile(file, line('2026-01-01T10:00:02.000Z', '111111'))
  await appendFile(file, line('2026-01-01T10:00:03.000Z', '222222', '491701234567'))
  await appendFile(file, line('2026-01-01T10:00:04.000Z', '333333', 'alan@example.test'))
  expect(await ofAda()).toBe('111111')
  expect(await ofGrace()).toBe('222222')
})
