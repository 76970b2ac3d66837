import { expect, test } from 'vitest'
import { eachWithHooks, hooks, receiver } from '../../../support/fresh-hooks.ts'

eachWithHooks()

test('an attempt tells what was sent, what was answered and how long it took, without the hook’s own credentials', async () => {
  const config = { url: receiver.url, headers: { authorization: 'Bearer top-secret', 'x-team': 'crm' } }
  const hook = await hooks.create({ url: receiver.url, config })
  receiver.answerWith(({ headers }, response) => {
    const number = receiver.received.length
    response.writeHead(number === 1 ? 500 : 200, { 'x-answer': 'yes', 'set-cookie': 'session=1' })
    response.end(number === 1 ? `you sent ${headers.authorization}\u0000` : 'thanks')
  })
  await hooks.relay({ retrySchedule: [1] })
  await hooks.record('a')
  await receiver.until((received) => received.length === 2)
  await hooks.settled(hook.id)

  const [listed] = await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries`)
  const arrived = receiver.received[0]!
  expect(await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries/${listed.id}`)).toEqual({
    ...listed,
    body: arrived.body,
  })
  const attempts = await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries/${listed.id}/attempts`)
  expect(attempts).toEqual([
    {
      id: expect.stringMatching(/^\d+$/),
      at: expect.any(Number),
      durationMs: expect.any(Number),
      succeeded: false,
      requestHeaders: expect.objectContaining({
        'content-type': 'application/json',
        'webhook-id': arrived.headers['webhook-id'],
        'webhook-signature': arrived.headers['webhook-signature'],
        authorization: '[redacted]',
        'x-team': '[redacted]',
      }),
      status: 500,
      responseHeaders: expect.objectContaining({ 'x-answer': 'yes', 'set-cookie': '[redacted]' }),
      responseBody: 'you sent [redacted]\u0000',
      error: 'The receiver answered 500.',
      address: '127.0.0.1',
    },
    expect.objectContaining({ succeeded: true, status: 200, responseBody: 'thanks', error: null }),
  ])
  const paged = await hooks.issuer.api('GET', `/hooks/${hook.id}/deliveries/${listed.id}/attempts?page=2&page_size=1`)
  expect(paged.headers.get('total-number')).toBe('2')
  expect(paged.body).toEqual(attempts.slice(1))
  expect(JSON.stringify(attempts)).not.toContain('top-secret')
})

test('markup in a payload and in an answer is shown as it came, as JSON that no browser takes for a page', async () => {
  const markup = '</script><script>alert(document.domain)</script>'
  const hook = await hooks.create({ url: receiver.url, events: ['User.Created'], name: markup })
  receiver.answerWith(
    (_received, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(markup),
  )
  await hooks.relay()
  await hooks.call(200, 'POST', '/users', { username: 'eve', name: markup })
  await receiver.until((received) => received.length === 1)
  await hooks.settled(hook.id)
  const [{ id }] = await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries`)
  const asPage = async (path: string) => {
    const { headers, body } = await hooks.issuer.api('GET', path)
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    return body
  }
  expect(await asPage(`/hooks/${hook.id}`)).toMatchObject({ name: markup })
  expect(await asPage(`/hooks/${hook.id}/deliveries/${id}`)).toMatchObject({ body: { data: { name: markup } } })
  expect(await asPage(`/hooks/${hook.id}/deliveries/${id}/attempts`)).toMatchObject([{ responseBody: markup }])
  expect(await asPage(`/hooks/${hook.id}/recent-logs`)).toMatchObject([{ payload: { response: { body: markup } } }])
})

test('deliveries are found by state, type, entity and time', async () => {
  const hook = await hooks.create({ url: receiver.url, events: ['*'] })
  receiver.answerWith(({ body }, response) => void response.writeHead(body.data['id'] === 'bad' ? 500 : 204).end())
  await hooks.relay()
  await hooks.record('a', 'bad', 'bad', 'a')
  await hooks.issuer.api('POST', '/roles', { name: 'Reader', description: 'x' })
  const list = async (query: string) => {
    const { body, headers } = await hooks.issuer.api('GET', `/hooks/${hook.id}/deliveries?${query}`)
    expect(headers.get('total-number'), query).toBe(String(body.length))
    return body.map((row: { event: string; entity: { id: string }; state: string }) => row.state)
  }
  await expect.poll(() => list('state=succeeded')).toHaveLength(3)
  await expect.poll(() => list('state=retrying')).toEqual(['retrying'])
  expect(await list('state=pending')).toEqual(['pending'])
  expect(await list('state=dead')).toEqual([])
  expect(await list('state=held')).toEqual([])
  expect(await list('event=User.*')).toHaveLength(4)
  expect(await list('event=Role.Created')).toEqual(['succeeded'])
  expect(await list('event=Nobody.Knows')).toEqual([])
  expect(await list('entityKind=user&entityId=bad')).toEqual(['pending', 'retrying'])
  expect(await list('entityId=a&event=User.Data.Updated&state=succeeded')).toHaveLength(2)
  const now = Date.now()
  expect(await list(`start_time=${now - 3_600_000}&end_time=${now + 3_600_000}`)).toHaveLength(5)
  expect(await list(`end_time=${now - 3_600_000}`)).toEqual([])

  await hooks.call(200, 'PATCH', `/hooks/${hook.id}`, { enabled: false })
  expect(await list('state=held')).toEqual(['held', 'held'])
  expect(await list('state=retrying')).toEqual([])
  for (const query of ['state=lost', 'start_time=x', 'page_size=101'])
    expect((await hooks.issuer.api('GET', `/hooks/${hook.id}/deliveries?${query}`)).status).toBe(400)
})

test('a delivery is being sent while its receiver thinks', async () => {
  const hook = await hooks.create({ url: receiver.url })
  let answer = () => {}
  receiver.answerWith((_received, response) => {
    answer = () => void response.writeHead(204).end()
  })
  await hooks.relay()
  await hooks.record('a', 'a')
  await receiver.until((received) => received.length === 1)
  expect(await hooks.states(hook.id)).toEqual(['pending', 'sending'])
  expect(await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries?state=sending`)).toHaveLength(1)
  receiver.answerWith((_received, response) => void response.writeHead(204).end())
  answer()
  await expect.poll(() => hooks.states(hook.id)).toEqual(['succeeded', 'succeeded'])
})

test('a hook sees its own deliveries only', async () => {
  const [mine, other] = [await hooks.create({ url: receiver.url }), await hooks.create({ url: receiver.url })]
  await hooks.relay()
  await hooks.record('a')
  await hooks.settled(mine.id)
  const [delivery] = await hooks.call(200, 'GET', `/hooks/${mine.id}/deliveries`)
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '/attempts'],
    ['POST', '/replay'],
  ] as const)
    expect(await hooks.call(404, method, `/hooks/${other.id}/deliveries/${delivery.id}${path}`)).toMatchObject({
      code: 'entity.not_exists_with_id',
    })
  const replay = await hooks.call(201, 'POST', `/hooks/${mine.id}/replays`, { since: 0 })
  await hooks.call(404, 'GET', `/hooks/${other.id}/replays/${replay.id}`)
  await hooks.call(404, 'DELETE', `/hooks/${other.id}/replays/${replay.id}`)
})

test('the last 24 hours are counted for each hook', async () => {
  const hook = await hooks.create({ url: receiver.url })
  const idle = await hooks.create({ url: receiver.url, events: ['Role.Created'] })
  receiver.answerWith(
    (_received, response) => void response.writeHead(receiver.received.length === 1 ? 500 : 204).end(),
  )
  await hooks.relay({ retrySchedule: [1] })
  await hooks.record('a', 'b')
  await hooks.settled(hook.id)
  const stats = async () => {
    const list = await hooks.call(200, 'GET', '/hooks?includeExecutionStats=true')
    for (const row of list)
      expect(await hooks.call(200, 'GET', `/hooks/${row.id}?includeExecutionStats=true`)).toEqual(row)
    return Object.fromEntries(list.map((row: { id: string; executionStats: object }) => [row.id, row.executionStats]))
  }
  expect(await stats()).toEqual({
    [hook.id]: { requestCount: 3, successCount: 2 },
    [idle.id]: { requestCount: 0, successCount: 0 },
  })
  await hooks.sql(`UPDATE delivery_attempts SET at = now() - interval '25 hours' WHERE NOT succeeded`)
  expect((await stats())[hook.id]).toEqual({ requestCount: 2, successCount: 2 })
})
