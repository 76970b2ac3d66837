import { expect, test } from 'vitest'
import { createSemaphore, createSemaphores } from '../../platform/semaphore.ts'
import { until } from '../support/until.ts'

/** Work that ends when it is told to. */
const controlled = () => {
  const started: string[] = []
  const ends = new Map<string, PromiseWithResolvers<string>>()
  return {
    started,
    work: (name: string) => () => {
      started.push(name)
      const end = Promise.withResolvers<string>()
      ends.set(name, end)
      return end.promise
    },
    end: (name: string) => ends.get(name)!.resolve(name),
    fail: (name: string) => ends.get(name)!.reject(new Error(name)),
  }
}

test('so much runs at a time, first come first served, and a failure gives its permit back too', async () => {
  const { started, work, end, fail } = controlled()
  const withPermit = createSemaphore({ permits: 2 })
  const results = ['a', 'b', 'c', 'd'].map((name) =>
    withPermit(work(name)).catch((error: Error) => `${error.message}!`),
  )
  await Promise.resolve()
  expect(started).toEqual(['a', 'b'])
  fail('b')
  expect(await results[1]).toBe('b!')
  expect(started).toEqual(['a', 'b', 'c'])
  end('a')
  expect(await results[0]).toBe('a')
  expect(started).toEqual(['a', 'b', 'c', 'd'])
  end('c')
  end('d')
  expect(await Promise.all(results)).toEqual(['a', 'b!', 'c', 'd'])
})

test('who comes when too many wait is turned away, and takes nothing', async () => {
  const { started, work, end } = controlled()
  const withPermit = createSemaphore({ permits: 1, maxWaiting: 1, full: () => new Error('full') })
  const first = withPermit(work('a'))
  const second = withPermit(work('b'))
  await expect(withPermit(work('c'))).rejects.toThrow('full')
  end('a')
  await first
  await until(() => expect(started).toEqual(['a', 'b']))
  const third = withPermit(work('d'))
  end('b')
  await second
  await until(() => expect(started).toEqual(['a', 'b', 'd']))
  end('d')
  expect(await third).toBe('d')
})

test('what waits for others of its key waits for nobody else, and keeps nobody else waiting', async () => {
  const { started, work, end, fail } = controlled()
  const withPermit = createSemaphores({ permits: 1 })
  const results = ['a1', 'a2', 'b1'].map((name) =>
    withPermit(name[0]!, work(name)).catch((error: Error) => `${error.message}!`),
  )
  await Promise.resolve()
  expect(started).toEqual(['a1', 'b1'])
  fail('a1')
  expect(await results[0]).toBe('a1!')
  await until(() => expect(started).toEqual(['a1', 'b1', 'a2']))
  end('a2')
  end('b1')
  expect(await Promise.all(results)).toEqual(['a1!', 'a2', 'b1'])
})

test("a permit that was given back is somebody else's, once, while the work of before goes on", async () => {
  const { started, work, end } = controlled()
  const withPermit = createSemaphore({ permits: 1 })
  const first = withPermit((release) => {
    release()
    release()
    return work('a')()
  })
  const others = ['b', 'c'].map((name) => withPermit(work(name)))
  await until(() => expect(started).toEqual(['a', 'b']))
  end('a')
  expect(await first).toBe('a')
  expect(started).toEqual(['a', 'b'])
  end('b')
  await until(() => expect(started).toEqual(['a', 'b', 'c']))
  end('c')
  expect(await Promise.all(others)).toEqual(['b', 'c'])
})
