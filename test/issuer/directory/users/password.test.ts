import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { verify } from '@node-rs/argon2'
import { expect, onTestFinished, test } from 'vitest'
import { createPasswordHasher } from '../../../../issuer/directory/users/password.ts'
import type { PasswordDigest } from '../../../../issuer/directory/users/password-digests.ts'

test('a digest verifies its password and no other, and no two are alike', async () => {
  const { hash } = createPasswordHasher()
  const [first, second] = await Promise.all([hash('correct horse'), hash('correct horse')])
  expect(first.algorithm).toBe('Argon2id')
  expect(first.digest).not.toBe(second.digest)
  expect(await verify(first.digest, 'correct horse')).toBe(true)
  expect(await verify(first.digest, 'correct horsé')).toBe(false)
})

test('a burst beyond the queue is refused at once, and the rest is served', async () => {
  const { hash } = createPasswordHasher({ threads: 1, maxWaiting: 2 })
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => hash('correct horse')))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected'])
  expect(results[4]).toMatchObject({ reason: { code: 'server.unavailable', status: 503 } })
  expect((await hash('once more')).algorithm).toBe('Argon2id')
})

test.each([
  { threads: 1, atOnce: 2 },
  { threads: 3, atOnce: 3 },
])(
  'who waits for a turn has begun nothing, and too many are refused before they begin: $threads threads',
  async ({ threads, atOnce }) => {
    const { inTurn } = createPasswordHasher({ threads, maxWaiting: 2 })
    const gate = Promise.withResolvers<void>()
    const begun: number[] = []
    const results = Promise.allSettled(
      Array.from({ length: 8 }, (_, n) =>
        inTurn(String(n), () => {
          begun.push(n)
          return gate.promise
        }),
      ),
    )
    await setImmediate()
    const turns = [...Array(atOnce).keys()]
    expect(begun).toEqual(turns)
    gate.resolve()
    expect((await results).map(({ status }) => status)).toEqual([
      ...Array(atOnce + 2).fill('fulfilled'),
      ...Array(6 - atOnce).fill('rejected'),
    ])
    expect(begun).toEqual([...turns, atOnce, atOnce + 1])
  },
)

/** The threads that are started from now on. */
const watchThreads = (): Worker[] => {
  const threads: Worker[] = []
  const note = (worker: Worker) => void threads.push(worker)
  process.on('worker', note)
  onTestFinished(() => void process.off('worker', note))
  return threads
}

/** Half a second of work: on no machine, however busy, is it done before somebody ends it. */
const expensive: PasswordDigest = {
  digest: `$argon2id$v=19$m=19456,t=100,p=1$${'c'.repeat(22)}$${'c'.repeat(43)}`,
  algorithm: 'Argon2id',
}

test('a thread that ends costs whom it worked for, and nobody after that, whether it worked or waited', async () => {
  const threads = watchThreads()
  const { hash, verify: holdAgainst, close } = createPasswordHasher({ threads: 1 })
  onTestFinished(close)
  await hash('correct horse')
  await threads[0]!.terminate()
  expect((await hash('after one that waited')).algorithm).toBe('Argon2id')

  const working = Promise.allSettled([holdAgainst('correct horse', expensive)])
  await setImmediate()
  await threads[1]!.terminate()
  expect(await working).toMatchObject([
    { status: 'rejected', reason: { message: expect.stringContaining('has ended') } },
  ])
  expect((await hash('after one that worked')).algorithm).toBe('Argon2id')
  expect(threads).toHaveLength(3)
})

test('who waits when it closes is told so, and no thread is started for them', async () => {
  const threads = watchThreads()
  const { hash, verify: holdAgainst, close } = createPasswordHasher({ threads: 1 })
  const waiting = () => Array.from({ length: 3 }, () => hash('correct horse'))
  const all = Promise.allSettled([holdAgainst('correct horse', expensive), ...waiting()])
  await setImmediate()
  const ended = once(threads[0]!, 'exit')
  await close()
  await ended
  expect((await all).slice(1)).toMatchObject(Array(3).fill({ reason: { code: 'server.unavailable' } }))
  await expect(hash('too late')).rejects.toMatchObject({ code: 'server.unavailable' })
  expect(threads).toHaveLength(1)
})
