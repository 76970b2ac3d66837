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

test('while a thousand questions are under way no further one is asked: 503; what is known is answered', async () => {
  const { answers, tell } = start()
  await tell('known')
  const { promise, resolve } = Promise.withResolvers<TokenAnswer<string>>()
  const waiting = Array.from({ length: 1_000 }, (_, index) => answers.get(`${index}`, () => promise))
  expect(() => tell('one more')).toThrow(
    expect.objectContaining({ status: 503, code: 'issuer_unavailable', headers: { 'retry-after': '1' } }),
  )
  expect(tell('known')).toMatchObject({ answer: 'known' })
  // Whoever waits for the same answer takes no place.
  const joined = answers.get('7', () => promise)
  resolve({ answer: 'x', until: 1, size: 1 })
  await Promise.all([...waiting, joined])
  expect(await tell('one more')).toMatchObject({ answer: 'one more' })
})
