import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Browser } from '../../../support/browser.ts'
import {
  type ConsoleWithGateways,
  type OneGateway,
  startConsoleWithGateways,
} from '../../../support/console-gateways.ts'
import { until } from '../../../support/until.ts'

/** What the console's server answers of two gateways, one of them with workers. */

let all: ConsoleWithGateways
let one: OneGateway
let two: OneGateway
let owner: Browser

beforeAll(async () => {
  all = await startConsoleWithGateways()
  ;[one, two] = await Promise.all([all.addGateway('one'), all.addWorkers('two')])
  all.asked.sort((first, second) => (first.name < second.name ? -1 : 1))
  owner = await all.home.browserOf(await all.home.createMember('owner'))
  await until(async () =>
    expect((await get('')).body.gateways.map(({ state }: { state: string }) => state)).toEqual(['answers', 'answers']),
  )
})

afterAll(() => all.close())

const get = (path: string, browser = owner) => all.home.call(browser, 'GET', `/gateways${path}`)

test('gateways are told with the revision that runs', async () => {
  const { body } = await get('')
  expect(body).toEqual({
    gateways: [
      { name: 'one', state: 'answers', revision: expect.stringMatching(/^\w/) },
      { name: 'two', state: 'answers', revision: expect.stringMatching(/^\w/) },
    ],
    audience: all.audience,
  })
})

test('decisions of all gateways are one list, newest first, and one is found wherever it is', async () => {
  const ids: string[] = []
  for (const gateway of [one, two, one, two]) ids.push(await gateway.decide())
  await until(async () => {
    const { body } = await get('/decisions')
    expect(body.missing).toEqual([])
    expect(
      body.decisions.map((each: { gateway: string; decision_id: string }) => [each.gateway, each.decision_id]),
    ).toEqual([3, 2, 1, 0].map((at) => [at % 2 === 0 ? 'one' : 'two', ids[at]]))
  })
  expect((await get('/decisions?limit=1')).body).toMatchObject({ decisions: [{ decision_id: ids[3] }], more: true })
  expect((await get('/decisions?gateway=one')).body.decisions).toHaveLength(2)
  expect((await get('/decisions?gateway=three')).status).toBe(404)
  expect((await get('/decisions?verdict=other')).status).toBe(400)
  expect((await get(`/decisions/${ids[1]}`)).body).toMatchObject({ gateway: 'two', decision_id: ids[1] })
  expect((await get(`/decisions/${ids[2]}/why`)).body).toMatchObject({ gateway: 'one', request: ids[2] })
  expect(await get('/decisions/unknown')).toMatchObject({
    status: 404,
    body: { code: 'entity.not_found', data: { missing: [] } },
  })
})
