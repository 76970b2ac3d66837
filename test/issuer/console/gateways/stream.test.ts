import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { consoleRoles } from '../../../../issuer/base/console-roles.ts'
import { createStreamPosition } from '../../../../web/console/api/stream-position.ts'
import type { Browser } from '../../../support/browser.ts'
import {
  type ConsoleWithGateways,
  type OneGateway,
  startConsoleWithGateways,
} from '../../../support/console-gateways.ts'
import type { EventStream, ReceivedEvent } from '../../../support/event-stream.ts'
import { until } from '../../../support/until.ts'

/** One stream of the decisions of two gateways, one of them with workers, over breaks of each connection. */

let all: ConsoleWithGateways
let one: OneGateway
let two: Awaited<ReturnType<ConsoleWithGateways['addWorkers']>>
let owner: Browser
let clockOffset = 0

beforeAll(async () => {
  all = await startConsoleWithGateways({ now: () => new Date(Date.now() + clockOffset) })
  ;[one, two] = await Promise.all([all.addGateway('one'), all.addWorkers('two')])
  owner = await all.home.browserOf(await all.home.createMember('owner'))
  await until(async () => {
    const { body } = await all.home.call(owner, 'GET', '/gateways')
    expect(body.gateways.map(({ state }: { state: string }) => state)).toEqual(['answers', 'answers'])
  })
})

afterAll(() => all.close())

const open = async (browser = owner, query = '') => {
  const stream = await all.stream(browser, query)
  onTestFinished(() => stream.close())
  return stream
}

const statesOf = ({ events }: EventStream, name: string) =>
  events.filter(({ event, data }) => event === 'gateway' && data.gateway === name).map(({ data }) => data.state)
const answering = async (stream: EventStream) => {
  for (const name of ['one', 'two'])
    await stream.until(({ event, data }) => event === 'gateway' && data.gateway === name && data.state === 'answers')
}
const idsOf = (events: readonly ReceivedEvent[]): string[] =>
  events.filter(({ event }) => event === 'decision').map(({ data }) => data.decision_id)
/** Those of `made`, as often as they came: after a break others may, of the second before the stream began. */
const cameOf = ({ events }: EventStream, made: readonly string[]) =>
  idsOf(events)
    .filter((id) => made.includes(id))
    .toSorted()

test('decisions of both come in one stream, each with its gateway, by the same filters', async () => {
  const stream = await open()
  const denied = await open(owner, '?verdict=denied&gateway=one')
  expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8'])
  await answering(stream)
  await denied.until(({ event }) => event === 'gateway')
  const allowed = [await one.decide(), await two.decide()]
  const refused = await one.decide('/orders/1')
  await two.decide('/orders/1')
  await until(() => expect(idsOf(stream.events)).toHaveLength(4))
  const gateways = new Map(
    stream.events.filter(({ event }) => event === 'decision').map(({ data }) => [data.decision_id, data.gateway]),
  )
  expect([gateways.get(allowed[0]), gateways.get(allowed[1])]).toEqual(['one', 'two'])
  await until(() => expect(idsOf(denied.events)).toEqual([refused]))
  expect(JSON.stringify(stream.events)).not.toMatch(/eyJ/)
})

test('a gateway that goes away and comes back leaves no hole and tells nothing twice', async () => {
  const stream = await open()
  await answering(stream)
  const ids = [await one.decide(), await two.decide()]
  await until(() => expect(idsOf(stream.events)).toHaveLength(2))
  for (const gateway of [one, two]) {
    gateway.line.cut(true)
    await stream.until(
      ({ event, data }) => event === 'gateway' && data.gateway === gateway.name && data.state === 'away',
    )
    for (let count = 0; count < 20; count++) ids.push(await gateway.decide())
    gateway.line.cut(false)
    await until(() => expect(statesOf(stream, gateway.name)).toEqual(['answers', 'away', 'answers']))
    // Broken again in the middle of what is told anew.
    gateway.line.break()
    ids.push(await gateway.decide())
  }
  await until(() => expect(cameOf(stream, ids)).toEqual(ids.toSorted()))
  expect(stream.events.filter(({ event }) => event === 'lost')).toEqual([])
  expect(stream.events.find(({ data }) => data.state === 'away')?.data.because).toMatch(/^(It|The) .*\.$/)
})

test('a page whose connection breaks asks from where it was: no hole, and its client knows what came twice', async () => {
  const position = createStreamPosition(undefined)
  const taken: string[] = []
  const made: string[] = []
  for (let round = 0; round < 3; round++) {
    const since = position.since()
    const stream = await open(owner, since === undefined ? '' : `?since=${encodeURIComponent(since)}`)
    position.begin(new Date(stream.headers.date!))
    await answering(stream)
    made.push(await one.decide(), await two.decide())
    await until(() => expect([...taken, ...idsOf(stream.events)]).toEqual(expect.arrayContaining(made)))
    for (const { event, data } of stream.events) {
      if (event === 'gateway') position.gateway(data.gateway, data.state === 'answers')
      if (event === 'decision' && position.take(data)) taken.push(data.decision_id)
    }
    stream.close()
    for (let count = 0; count < 10; count++) made.push(await one.decide(), await two.decide())
  }
  const last = await open(owner, `?since=${encodeURIComponent(position.since()!)}`)
  await until(() => {
    for (const { event, data } of last.events)
      if (event === 'decision' && position.take(data)) taken.push(data.decision_id)
    expect(taken.filter((id) => made.includes(id)).toSorted()).toEqual(made.toSorted())
  })
})

test('a gateway that is away when the stream begins is told, and what it decided since comes', async () => {
  one.line.cut(true)
  const stream = await open()
  await stream.until(({ event, data }) => event === 'gateway' && data.gateway === 'one' && data.state === 'away')
  const id = await one.decide()
  one.line.cut(false)
  await until(() => expect(idsOf(stream.events)).toContain(id))
})

test('a token that expires is replaced, and nothing is missing', async () => {
  const browser = await all.home.browserOf(await all.home.createMember('auditor'))
  // By the clock of the issuer nearly five minutes ago.
  clockOffset = -297_000
  onTestFinished(() => {
    clockOffset = 0
  })
  const stream = await open(browser)
  await answering(stream)
  clockOffset = 0
  const before = await answered()
  const ids: string[] = []
  // Decisions go on while both streams of the gateways are opened anew.
  await until(async () => {
    ids.push(await one.decide(), await two.decide())
    expect(await answered()).toBeGreaterThan(before)
  })
  await until(() => expect(cameOf(stream, ids)).toEqual(ids.toSorted()))
  expect([statesOf(stream, 'one'), statesOf(stream, 'two')]).toEqual([['answers'], ['answers']])
})

test('whoever loses the role, or signs out, loses the stream', async () => {
  const person = await all.home.createMember('auditor')
  const browser = await all.home.browserOf(person)
  const stream = await open(browser)
  await answering(stream)
  await all.home.issuer.sql('DELETE FROM user_roles WHERE user_id = $1 AND role_id = $2', [
    person.id,
    consoleRoles.auditor.id,
  ])
  await stream.ended
  expect(stream.events.at(-1)).toEqual({ id: undefined, event: 'end', data: { because: 'signed_out' } })

  const other = await all.home.browserOf(await all.home.createMember('auditor'))
  const second = await open(other)
  await answering(second)
  expect((await all.home.call(other, 'POST', '/session/end', {})).status).toBe(200)
  await second.ended
  expect(second.events.at(-1)?.event).toBe('end')
  // The gateways know of it too: their streams were ended with the authorization.
  await until(async () => expect(await openStreams()).toBe(0))
})

/** Requests of the inspection of one of them that are over: a stream counts when it has ended. */
const answered = async () => {
  const metrics = await two.workers.metrics()
  return Number(/^surrogate_gateway_inspection_requests_total\{status="200"\} (\d+)$/m.exec(metrics)?.[1])
}

const openStreams = async () => {
  const metrics = await two.workers.metrics()
  return Number(/^surrogate_gateway_inspection_streams (\d+)$/m.exec(metrics)?.[1])
}

test('one person has eight streams at most', async () => {
  const browser = await all.home.browserOf(await all.home.createMember('auditor'))
  const streams = await Promise.all(Array.from({ length: 8 }, () => open(browser, '?gateway=one')))
  expect(streams.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200))
  expect((await open(browser)).status).toBe(503)
  streams[0]!.close()
  await until(async () => {
    const next = await all.stream(browser, '?gateway=one')
    next.close()
    expect(next.status).toBe(200)
  })
})

test('when the issuer stops, a stream is told and ends', async () => {
  const other = await startConsoleWithGateways()
  const browser = await other.home.browserOf(await other.home.createMember('auditor'))
  const stream = await other.stream(browser)
  await other.close()
  await stream.ended
  expect(stream.events.at(-1)).toEqual({ id: undefined, event: 'end', data: { because: 'closing' } })
})
