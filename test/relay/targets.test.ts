import { expect, test } from 'vitest'
import { hookSecrets } from '../../deliveries/hook-secrets.ts'
import type { Query } from '../../platform/database.ts'
import { silentLogger } from '../../platform/logger.ts'
import { createTargets } from '../../relay/targets.ts'
import { eachWithLedger, ledger } from '../support/fresh-ledger.ts'

eachWithLedger()

/** How a relay knows the hooks that it sends to. */

const opened = (freshMs: number) => {
  const reads: string[][] = []
  let answered = Promise.resolve()
  const query: Query = async (statement, values) => {
    reads.push((values[0] as string[]).toSorted())
    await answered
    return ledger.database.query(statement, values)
  }
  const targets = createTargets({ query, secrets: hookSecrets(ledger.envelope), logger: silentLogger, freshMs })
  return {
    reads,
    hostOf: async (hookId: string, since = 0) => (await targets.current(hookId, since))?.target?.url.hostname,
    /** From now on the database answers only when the result is called. */
    holdAnswers() {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      answered = promise
      return { answer: resolve, fail: () => reject(new Error('the database is away')) }
    },
  }
}
const threeHooks = async () => {
  const hooks = []
  for (let number = 0; number < 3; number += 1) hooks.push((await ledger.hook({ url: `https://${number}.test` })).id)
  return hooks as [string, string, string]
}
const move = () => ledger.rows(`UPDATE hooks SET url = 'https://moved.test'`)

test('hooks in use are read together, before what is known of them is too old, so that nothing waits for that', async () => {
  const [one, two, unused] = await threeHooks()
  const { reads, hostOf, holdAnswers } = opened(4_000)
  expect(await Promise.all([one, two, unused].map((id) => hostOf(id)))).toEqual(['0.test', '1.test', '2.test'])
  expect(reads).toEqual([[one, two, unused].toSorted()])
  await move()
  const { answer } = holdAnswers()
  // Asked for all the time, they are read anew in the background.
  await expect
    .poll(async () => {
      expect(await Promise.all([one, two].map((id) => hostOf(id)))).toEqual(['0.test', '1.test'])
      return reads.slice(1)
    })
    .toEqual([[one, two].toSorted()])
  answer()
  await expect.poll(() => Promise.all([one, two].map((id) => hostOf(id)))).toEqual(['moved.test', 'moved.test'])
  expect(reads).toHaveLength(2)
})

test('what had changed before an event happened is known, however fresh what is known is', async () => {
  const [one] = await threeHooks()
  const { reads, hostOf } = opened(60_000)
  expect(await hostOf(one)).toBe('0.test')
  await move()
  expect(await hostOf(one)).toBe('0.test')
  const since = performance.now()
  expect(await Promise.all([hostOf(one, since), hostOf(one, since)])).toEqual(['moved.test', 'moved.test'])
  expect(await hostOf(one, since)).toBe('moved.test')
  expect(reads).toHaveLength(2)
})

test('what is too old is not used: whoever asks waits, also for a database that fails, and hears of it', async () => {
  const [one] = await threeHooks()
  const { reads, hostOf, holdAnswers } = opened(0)
  expect(await hostOf(one)).toBe('0.test')
  await move()
  expect(await hostOf(one)).toBe('moved.test')
  const { fail } = holdAnswers()
  const asked = [hostOf(one), hostOf(one)]
  fail()
  for (const result of await Promise.allSettled(asked)) expect(result.status).toBe('rejected')
  holdAnswers().answer()
  await ledger.rows('DELETE FROM hooks')
  expect(await hostOf(one)).toBeUndefined()
  expect(reads).toEqual([[one], [one], [one], [one]])
})
