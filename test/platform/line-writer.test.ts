import { spawnSync } from 'node:child_process'
import { constants, existsSync } from 'node:fs'
import { mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openLines, requireAppendable } from '../../platform/line-writer.ts'
import { until } from '../support/until.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lines-'))
})
afterEach(() => rm(folder, { recursive: true }))

const bufferSize = 65_536
const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`)

/** A pipe that can be read, or left alone until it is full. */
const makePipe = async () => {
  const pipe = join(folder, 'pipe')
  expect(spawnSync('mkfifo', [pipe]).status).toBe(0)
  return { pipe, reader: await open(pipe, constants.O_RDONLY | constants.O_NONBLOCK) }
}

test('lines arrive whole and in order, in a file whose folders are made', async () => {
  const file = join(folder, 'deep', 'er', 'lines')
  const lines = openLines({ to: file, bufferSize })
  for (const line of numbered(0, 3_000)) expect(lines.write(line)).toBe(true)
  await lines.close()
  expect(await readFile(file, 'utf8')).toBe(numbered(0, 3_000).join(''))
  expect(lines.write('late\n'), 'after the end').toBe(false)
})

test('a file that was moved away gets what was written before, and the new one the rest', async () => {
  const file = join(folder, 'lines')
  const lines = openLines({ to: file, bufferSize })
  for (const line of numbered(0, 100)) lines.write(line)
  await rename(file, `${file}.1`)
  lines.reopen()
  for (const line of numbered(100, 200)) lines.write(line)
  await lines.close()
  expect((await readFile(`${file}.1`, 'utf8')) + (await readFile(file, 'utf8'))).toBe(numbered(0, 200).join(''))
  expect(await readFile(file, 'utf8')).toContain('line 199\n')
})

test('a file that cannot be opened anew leaves the old one in use', async () => {
  const file = join(folder, 'lines')
  const lines = openLines({ to: file, bufferSize })
  lines.write('before\n')
  await rename(file, `${file}.1`)
  await mkdir(file)
  expect(() => lines.reopen()).toThrow('EISDIR')
  lines.write('after\n')
  await lines.close()
  expect(await readFile(`${file}.1`, 'utf8')).toBe('before\nafter\n')
})

describe('a pipe that nobody reads', () => {
  test('takes what it can; then lines wait, beyond the buffer they are dropped; a reader gets the rest whole', async () => {
    const { pipe, reader } = await makePipe()
    const lines = openLines({ to: pipe, bufferSize })
    const long = `${'x'.repeat(1_023)}\n`
    let taken = 0
    await until(() => {
      while (lines.write(long)) taken++
      expect(taken).toBeGreaterThanOrEqual(2 * 64)
    })
    expect(lines.write(long)).toBe(false)
    let received = ''
    await until(async () => {
      const { bytesRead, buffer } = await reader.read(Buffer.alloc(65_536)).catch(() => ({ bytesRead: 0, buffer: '' }))
      received += buffer.toString().slice(0, bytesRead)
      expect(received.length).toBe(taken * 1_024)
    })
    expect(received).toBe(long.repeat(taken))
    await lines.close()
    await reader.close()
  })

  test('is given up at the end', async () => {
    const { pipe, reader } = await makePipe()
    const lines = openLines({ to: pipe, bufferSize: 1_000_000 })
    for (const line of numbered(0, 50_000)) lines.write(line)
    await lines.close()
    await reader.close()
  })

  test('is refused when there is no reader at all', async () => {
    const { pipe, reader } = await makePipe()
    await reader.close()
    expect(() => openLines({ to: pipe, bufferSize })).toThrow('ENXIO')
    expect(() => requireAppendable(pipe), 'its reader may come').not.toThrow()
  })
})

test('a full disk is told, and lines wait for room as far as there is some', async () => {
  const errors: (string | undefined)[] = []
  const lines = openLines({
    to: '/dev/full',
    bufferSize: 100,
    onError: ({ code }: NodeJS.ErrnoException) => void errors.push(code),
  })
  expect(lines.write('one\n')).toBe(true)
  await until(() => expect(errors).toContain('ENOSPC'))
  expect(lines.write('x'.repeat(100))).toBe(false)
  expect(lines.write('two\n')).toBe(true)
  await lines.close()
})

describe('asked in advance', () => {
  test('what could be opened is not made', () => {
    const file = join(folder, 'not', 'there', 'yet')
    expect(() => requireAppendable(file)).not.toThrow()
    expect(existsSync(join(folder, 'not'))).toBe(false)
  })

  test.each([
    ['a folder', (inside: string) => inside, 'EISDIR'],
    ['something below a file', (inside: string) => join(inside, 'file', 'log'), 'ENOTDIR'],
    ['something far below a file', (inside: string) => join(inside, 'file', 'logs', 'log'), 'ENOTDIR'],
  ])('%s is refused', async (_what, path, code) => {
    await writeFile(join(folder, 'file'), '')
    expect(() => requireAppendable(path(folder))).toThrow(code)
    expect(() => openLines({ to: path(folder), bufferSize })).toThrow(/EISDIR|ENOTDIR|EEXIST/)
  })
})
