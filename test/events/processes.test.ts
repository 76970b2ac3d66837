import { connect } from '@nats-io/transport-node'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { natsMissing, startTestNats, type TestNats } from '../support/nats.ts'
import { type SurrogateProcess, startSurrogateProcess, testClient } from '../support/surrogate-process.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

/**
 * `surrogate issuer` and `surrogate relay` as operators run them: processes of their own that share a database and a
 * broker.
 */
describe.skipIf(natsMissing() !== undefined)('processes', { timeout: 90_000 }, () => {
  let db: TestDatabase
  let nats: TestNats
  let receiver: WebhookReceiver
  let running: SurrogateProcess[]
  beforeEach(async () => {
    db = await createTestDatabase()
    nats = await startTestNats({ running: false })
    receiver = await startWebhookReceiver()
    running = []
  })
  afterEach(async () => {
    for (const child of running) {
      child.signal('SIGKILL')
      await child.exited
    }
    await receiver.close()
    await nats.close()
    await db.close()
  })

  const start = async (command: 'issuer' | 'relay', env: Record<string, string>) => {
    const child = await startSurrogateProcess(command, db.connection, env)
    running.push(child)
    return child
  }
  const started = async (child: SurrogateProcess) => {
    await expect
      .poll(
        () =>
          child.readiness().then(
            ({ body }) => body.checks['start']?.ok,
            () => false,
          ),
        { timeout: 30_000 },
      )
      .toBe(true)
    return child
  }
  const end = async (...children: SurrogateProcess[]) => {
    for (const child of children) child.signal('SIGTERM')
    for (const child of children) expect(await child.exited).toEqual({ code: 0, signal: null })
  }

  /** An issuer, and a caller of its Management API. */
  const startIssuer = async (env: Record<string, string>) => {
    const port = await freePort()
    const child = await start('issuer', { PORT: String(port), ...env })
    await started(child)
    const url = `http://localhost:${port}`
    const answer = await fetch(`${url}/oidc/token`, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${Buffer.from(`${testClient.id}:${testClient.secret}`).toString('base64')}`,
      },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource: `${url}/api`, scope: 'all' }),
    })
    const { access_token: token } = (await answer.json()) as { access_token: string }
    const api = async (method: string, path: string, body?: unknown) => {
      const response = await fetch(`${url}/api${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      expect(response.ok).toBe(true)
      return response.status === 204 ? undefined : await response.json()
    }
    return { child, api }
  }
  const register = (api: (method: string, path: string, body?: unknown) => Promise<unknown>) =>
    api('POST', '/hooks', { name: 'test', events: ['Role.Created'], config: { url: receiver.url } })
  const create = async (
    api: (method: string, path: string, body?: unknown) => Promise<unknown>,
    ...names: string[]
  ) => {
    for (const name of names) await api('POST', '/roles', { name, description: name })
  }
  const arrived = (...names: string[]) =>
    expect
      .poll(() => receiver.received.map(({ body }) => body.data['name']).toSorted(), { timeout: 30_000 })
      .toEqual(names.toSorted())

  test('an issuer and two relays, with nothing between them but Postgres and NATS', async () => {
    await nats.start()
    const env = { NATS_URL: nats.url }
    const { child: issuer, api } = await startIssuer(env)
    const relays = [await start('relay', env), await start('relay', env)]
    for (const relay of relays) await started(relay)
    await register(api)
    await create(api, 'one', 'two', 'three')
    await arrived('one', 'two', 'three')

    for (const child of [issuer, ...relays]) {
      const { status, body } = await child.readiness()
      expect({ status, ok: body.ok }).toEqual({ status: 200, ok: true })
      expect(JSON.stringify(body.checks)).toMatch(/NATS 2\./)
    }
    const metrics = await Promise.all(
      [issuer, ...relays].map(async ({ adminUrl }) => (await fetch(`${adminUrl}/metrics`)).text()),
    )
    expect(metrics[0]).toMatch(/^surrogate_events_published_total [1-9]/m)
    expect(metrics[0]).toMatch(/^surrogate_outbox_unpublished_oldest_seconds 0$/m)
    expect(metrics[0]).toMatch(/^surrogate_event_publish_lag_seconds_count [1-9]/m)
    expect(metrics[0]).toMatch(/^surrogate_bus_connected 1$/m)
    expect(metrics.slice(1).join('\n')).toMatch(/^surrogate_events_ingested_total [1-9]/m)
    expect(metrics[1]).toMatch(/^surrogate_outbox_oldest_seconds 0$/m)
    await end(issuer, ...relays)
  })

  test('without NATS the issuer starts and changes go on; what they recorded is delivered when NATS comes', async () => {
    const env = { NATS_URL: nats.url }
    const [{ child: issuer, api }, relay] = await Promise.all([startIssuer(env), start('relay', env).then(started)])
    await register(api)
    await create(api, 'one', 'two')
    for (const child of [issuer, relay]) {
      const { status, body } = await child.readiness()
      expect(status).toBe(200)
      expect(JSON.stringify(body.checks)).toMatch(/degraded: NATS/)
    }
    expect(receiver.received).toEqual([])
    await nats.start()
    await arrived('one', 'two')
    await end(issuer, relay)
  })

  test('from Postgres to NATS and back: what one has left is found by the other', async () => {
    const first = await startIssuer({})
    await register(first.api)
    await create(first.api, 'by-postgres')
    await end(first.child)

    await nats.start()
    const second = await startIssuer({ NATS_URL: nats.url })
    await create(second.api, 'by-nats')
    const relay = await started(await start('relay', { NATS_URL: nats.url }))
    await arrived('by-postgres', 'by-nats')
    await end(relay)
    await create(second.api, 'left-in-nats')
    await end(second.child)

    await nats.stop()
    await started(await start('relay', {}))
    await arrived('by-postgres', 'by-nats', 'left-in-nats')
  })

  test('a revocation is hinted at on NATS', async () => {
    await nats.start()
    const { api } = await startIssuer({ NATS_URL: nats.url })
    const listener = await connect({ servers: nats.url })
    const hints: string[] = []
    listener.subscribe('surrogate.revocations', { callback: (_error, { subject }) => void hints.push(subject) })
    await listener.flush()
    const { id } = (await api('POST', '/users', { username: 'ada' })) as { id: string }
    await api('PATCH', `/users/${id}/is-suspended`, { isSuspended: true })
    await expect.poll(() => hints.length).toBeGreaterThan(0)
    await listener.close()
  })

  test('a stream that is not ours ends the start with what differs, and exit code 2', async () => {
    await nats.start()
    const { jetstreamManager } = await import('@nats-io/jetstream')
    const somebody = await connect({ servers: nats.url })
    const manager = await jetstreamManager(somebody)
    await manager.streams.add({ name: 'SURROGATE_EVENTS', subjects: ['surrogate.events.>'], max_age: 60_000_000_000 })
    await somebody.close()
    const relay = await start('relay', { NATS_URL: nats.url })
    expect(await relay.exited).toEqual({ code: 2, signal: null })
    expect(relay.output()).toMatch(/The stream SURROGATE_EVENTS has other settings than Surrogate needs:/)
    expect(relay.output()).toMatch(
      / {2}max_age: 60000000000, needed: 604800000000000\n {2}discard: "old", needed: "new"/,
    )
  })

  test('a server without JetStream is told at once', async () => {
    const plain = await startTestNats({ jetstream: false })
    try {
      const relay = await start('relay', { NATS_URL: plain.url })
      expect((await relay.exited).code).toBe(3)
      expect(relay.output()).toMatch(/has no JetStream/)
    } finally {
      await plain.close()
    }
  })
})
