import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { consumerName, streamName } from '../../events/jetstream-stream.ts'
import { Secret } from '../../platform/secret.ts'
import { createTestDatabase } from '../support/database.ts'
import { createTestFlow } from '../support/event-flow.ts'
import { natsMissing, natsServers, startTestNats } from '../support/nats.ts'

const page = readFileSync(new URL('../../docs/nats.md', import.meta.url), 'utf8')

test.skipIf(natsMissing() !== undefined)('the users of docs/nats.md may do what issuer and relay need', async () => {
  const config = /^```\n(authorization \{[\s\S]*?)^```/m.exec(page)![1]!
  const password = (user: string) => new RegExp(`user: ${user}, password: "([^"]+)"`).exec(config)![1]!
  const nats = await startTestNats({ config })
  onTestFinished(nats.close)
  const db = await createTestDatabase()
  onTestFinished(db.close)
  const as = (user: string) => {
    const flow = createTestFlow(db, { servers: natsServers(nats.port, { user, password: new Secret(password(user)) }) })
    onTestFinished(flow.close)
    return flow
  }
  const [issuer, relay] = [as('issuer'), as('relay')]
  const publisher = await issuer.openPublisher()
  const held = Promise.withResolvers<void>()
  const { bus, batches } = await relay.openConsumer({ before: () => held.promise })
  await issuer.record('u1')
  publisher.wake()
  await expect.poll(() => batches.length).toBe(1)
  // Something is on its way: the relay looks at the oldest message in the stream.
  expect(await bus.lostBefore()).toBeInstanceOf(Date)
  held.resolve()
  await expect.poll(relay.ingested).toBe(1)
  publisher.bus.hintRevocations()
  expect(issuer.log() + relay.log()).not.toMatch(/"level":"(warn|error)"/)
})

test('docs/nats.md names the stream, the consumer, and metrics that exist', async () => {
  expect(page).toContain(`\`${streamName}\``)
  expect(page).toContain(`\`${consumerName}\``)
  let sources = ''
  for await (const file of glob('{events,relay}/*.ts')) sources += readFileSync(file, 'utf8')
  const made = new Set([...sources.matchAll(/'(surrogate_(?:bus|outbox|events?)_\w+)'/g)].map(([, name]) => name!))
  const documented = new Set([...page.matchAll(/`(surrogate_\w+)/g)].map(([, name]) => name!))
  expect([...documented].toSorted()).toEqual([...made].toSorted())
})
