import { expect, test } from 'vitest'
import { hookSecrets } from '../../deliveries/hook-secrets.ts'
import type { Query } from '../../platform/database/database.ts'
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
      // It may be over before anybody waits for it.
      promise.catch(() => {})
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

test('hooks that are asked for at the same time are read together, and not again while that is fresh', async () => {
  const [one, two, three] = await threeHooks()
  const { reads, hostOf } = opened(60_000)
  const hosts = () => Promise.all([one, two, three, one].map((id) => hostOf(id)))
  expect(await hosts()).toEqual(['0.test', '1.test', '2.test', '0.test'])
  await move()
  expect(await hosts()).toEqual(['0.test', '1.test', '2.test', '0.test'])
  expect(reads).toEqual([[one, two, three].toSorted()])
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
