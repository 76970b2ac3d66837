import { afterAll, beforeAll, expect, test } from 'vitest'
import { tryAnswer } from '../../../gateway/inspection/policy-answers.ts'
import { shippedRules, startPolicyFolder } from '../../support/policy-folder.ts'
import { until } from '../../support/until.ts'

/** Masks of single claims: which candidates can be compared by what was recorded. */

let own: Awaited<ReturnType<typeof startPolicyFolder>>
const count = 6

beforeAll(async () => {
  const mask = ['/input/token/claims/email', { path: '/input/token/claims/address/street', value: '…' }]
  own = await startPolicyFolder(
    { 'decision.rego': await shippedRules() },
    { members: { decisionLog: { to: '/dev/null', mask } } },
  )
  for (let index = 0; index < count; index++) {
    const address = { street: '1 Main Street', country: index % 2 === 0 ? 'NL' : 'FR' }
    const claims = { email: `person${index}@example.test`, plan: index < 2 ? 'free' : 'gold', address }
    const token = await own.gateway.issuer.sign({ sub: 'alice', client_id: 'c1', scope: 'read:orders', ...claims })
    expect((await own.gateway.call(`/orders/${index}`, { token })).status).toBe(200)
  }
  await until(async () => {
    const { decisions } = await own.client.get('decisions', '/decisions?limit=100')
    expect(decisions).toHaveLength(count)
    expect(JSON.stringify(decisions)).not.toMatch(/person\d@|Main Street/)
  })
})
afterAll(() => own?.close())

const compared = async (body: string) => {
  const text = `package surrogate.gateway\n\ndeny contains {"reason": "tried"} if ${body}\n`
  const { body: answer } = await own.client.post('/try', { files: { 'tried.rego': text }, decisions: 100 })
  const { issues, decisions } = tryAnswer.parse(answer)
  expect(issues).toEqual([])
  const { notComparable, hidden, changes, ...rest } = decisions!
  expect(rest).toEqual({ found: count, compared: count - notComparable, notAsked: 0 })
  return { notComparable, hidden, changes: changes.length }
}

const email = '/input/token/claims/email'
const street = '/input/token/claims/address/street'

test.each([
  ['another claim', 'input.token.claims.plan == "free"', 2],
  ['a claim beside one in the same object', 'input.token.claims.address.country == "FR"', 3],
])('a rule that reads beside the masks is compared: %s', async (_what, body, changes) => {
  expect(await compared(body)).toEqual({ notComparable: 0, hidden: [], changes })
})

test.each([
  ['at it', 'endswith(input.token.claims.email, "@example.test")', [email]],
  ['at one whose value was replaced', 'input.token.claims.address.street == "x"', [street]],
  ['whether it is there', 'not input.token.claims.email', [email]],
  ['above it', 'count(input.token.claims.address) > 5', [street]],
  ['by a name that the request gives', 'input.token.claims[input.request.method] == "x"', [email, street]],
  ['through a function', 'object.get(input, ["token", "claims", "plan"], "") == "x"', [email, street]],
])('a rule that may read what a mask has taken out is not: %s', async (_how, body, hidden) => {
  const answer = await compared(body)
  expect({ ...answer, hidden: answer.hidden.toSorted() }).toEqual({
    ...{ notComparable: count, changes: 0 },
    hidden: hidden.toSorted(),
  })
})
