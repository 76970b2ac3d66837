import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { readWhole } from '../../../platform/http/read-whole.ts'

const body = () => Readable.from([Buffer.from('abc'), Buffer.from('de')])
const tooLarge = () => new Error('too large')

test('a body up to the limit is whole', async () => {
  expect((await readWhole(body(), 5, tooLarge)).toString()).toBe('abcde')
  expect(await readWhole(Readable.from([]), 0, tooLarge)).toHaveLength(0)
})

test('a body beyond the limit is refused with the error of the caller, and left', async () => {
  const long = body()
  await expect(readWhole(long, 4, tooLarge)).rejects.toThrow('too large')
  expect(long.destroyed).toBe(true)
})
