import { expect, test } from 'vitest'
import { createTokenAnswers, type TokenAnswer } from '../../../gateway/caller/token-answers.ts'

const start = () => {
  let time = 0
  const answers = createTokenAnswers<string>({ now: () => new Date(time) })
  const asked: string[] = []
  const tell = (key: string, told: Partial<TokenAnswer<string>> = {}) =>
    answers.get(key, async () => {
      asked.push(key)
      return { answer: key, until: time + 60_000, size: key.length, ...told }
    })
  return {
    answers,
    asked,
    tell,
    later: (ms: number) => {
      time += ms
    },
  }
}

test('a token is asked about once for all that wait, and again when its answer has ended', async () => {
  const { asked, tell, later } = start()
  const [one, other] = await Promise.all([tell('a'), tell('a')])
  expect(one).toBe(other)
  later(59_999)
  expect(tell('a')).toBe(one)
  later(1)
  await tell('a')
  expect(asked).toEqual(['a', 'a'])
})

test('a question that failed is asked again, and everybody who waited is told', async () => {
  const { answers, tell } = start()
  const fail = async (): Promise<TokenAnswer<string>> => {
    throw new Error('down')
  }
  const outcomes = await Promise.allSettled([answers.get('a', fail), answers.get('a', fail)])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await tell('a')).toMatchObject({ answer: 'a' })
})

test('refused tokens never push out good ones, and neither kind grows without end', async () => {
  const { answers, asked, tell } = start()
  await tell('good')
  for (let index = 0; index < 10_001; index++) await tell(`bad ${index}`, { answer: undefined })
  expect(await tell('good')).toMatchObject({ answer: 'good' })
  await tell('bad 10000', { answer: undefined })
  expect(asked).toHaveLength(10_002)
  await tell('bad 0', { answer: undefined })
  expect(asked).toHaveLength(10_003)
  for (let index = 0; index < 10_000; index++) await tell(`good ${index}`)
  expect(answers.size).toBe(10_000)
  await tell('large', { size: 31_999_999 })
  expect(answers.size).toBe(1)
})

test('while 500 questions are under way no unknown token is asked about: 503; a thousand hold up known ones', async () => {
  const { answers, tell, later } = start()
  for (let index = 0; index < 501; index++) await tell(`known ${index}`)
  await tell('unknown', { answer: undefined })
  const { promise, resolve } = Promise.withResolvers<TokenAnswer<string>>()
  const ask = (key: string) => answers.get(key, () => promise)
  const waiting = Array.from({ length: 500 }, (_, index) => ask(`${index}`))
  const unavailable = expect.objectContaining({
    status: 503,
    code: 'issuer_unavailable',
    headers: { 'retry-after': '1' },
  })
  expect(() => ask('one more')).toThrow(unavailable)
  expect(tell('known 0')).toMatchObject({ answer: 'known 0' })
  // Whoever waits for the same answer takes no place.
  waiting.push(ask('7'))
  later(60_000)
  expect(() => ask('unknown')).toThrow(unavailable)
  for (let index = 0; index < 500; index++) waiting.push(ask(`known ${index}`))
  expect(() => ask('known 500')).toThrow(unavailable)
  resolve({ answer: 'x', until: 60_001, size: 1 })
  await Promise.all(waiting)
  expect(await tell('one more')).toMatchObject({ answer: 'one more' })
})

test('a token that is refused is no good one any more', async () => {
  const { answers, tell, later } = start()
  await tell('a')
  later(60_000)
  await tell('a', { answer: undefined })
  expect(answers.size).toBe(0)
  later(60_000)
  await tell('a')
  expect([answers.size, tell('a')]).toMatchObject([1, { answer: 'a' }])
})
