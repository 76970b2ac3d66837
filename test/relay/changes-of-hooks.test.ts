import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { hookSecrets, newSigningKey, webhookSecretOf } from '../../deliveries/hook-secrets.ts'
import { insertTestSend } from '../../deliveries/test-send-store.ts'
import { statement } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import { ingestEvents } from '../../relay/ledger/ingest-store.ts'
import { inOrder, lockNextPending } from '../../relay/ledger/pending-store.ts'
import { removeExpired } from '../../relay/ledger/retention-store.ts'
import { userUpdated } from '../support/event-factory.ts'
import { anotherReceiver, eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { testRelayConfig } from '../support/relay.ts'
import type { Received } from '../support/webhook-receiver.ts'

eachWithLedger()

// Read anew for every attempt: no attempt that begins after a change may know the hook as it was.
const config = { ...testRelayConfig, freshMs: 0, retrySchedule: [10, 10] }
const three = [userUpdated('u1'), userUpdated('u1'), userUpdated('u1')]

/** Lets the first request wait until `change` is committed. */
const whileFirstIsSent = (change: () => Promise<unknown>, status = 204) =>
  receiver.answerWith((_received, response) => {
    const isFirst = receiver.received.length === 1
    const done = isFirst ? change() : Promise.resolve()
    void done.then(() => response.writeHead(isFirst ? status : 204).end())
  })

const verifies = ({ raw, headers }: Received, key: string) => {
  try {
    return Boolean(new Webhook(webhookSecretOf(key)).verify(raw.toString(), headers as Record<string, string>))
  } catch {
    return false
  }
}

test('a new URL holds from the next attempt on, in the middle of a lane', async () => {
  const moved = await anotherReceiver()
  const hook = await ledger.hook({ url: receiver.url })
  whileFirstIsSent(() => ledger.rows('UPDATE hooks SET url = $1 WHERE id = $2', moved.url, hook.id))
  await ledger.record(...three)
  await ledger.relay({ config })
  await moved.until((received) => received.length === 2)
  await ledger.untilTrue(`SELECT count(*) = 3 FROM deliveries WHERE state = 'succeeded'`)
  expect(receiver.received).toHaveLength(1)
  expect(moved.received.map(({ body }) => body.version)).toEqual([2, 3])
  await moved.close()
})

test('an event after a change finds the hook changed, however fresh what the relay knows is', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, freshMs: 60_000 } })
  for (const id of ['u1', 'u2']) {
    await ledger.record(userUpdated(id))
    await ledger.untilSettled()
  }
  const moved = await anotherReceiver()
  await ledger.rows('UPDATE hooks SET url = $1 WHERE id = $2', moved.url, hook.id)
  await ledger.record(userUpdated('u3'))
  await ledger.untilSettled()
  expect(receiver.received).toHaveLength(2)
  expect(moved.received).toHaveLength(1)
})

test('an event that comes to a lane that is just worked off finds the hook as it was changed before', async () => {
  const moved = await anotherReceiver()
  const hook = await ledger.hook({ url: receiver.url })
  const changed = async () => {
    await ledger.rows('UPDATE hooks SET url = $1 WHERE id = $2', moved.url, hook.id)
    await ledger.record(userUpdated('u1'))
    await ledger.untilTrue(`SELECT NOT EXISTS (SELECT FROM outbox_pending)`)
  }
  whileFirstIsSent(changed)
  // What is read of a lane at a time.
  await ledger.record(...Array.from({ length: 8 }, () => userUpdated('u1')))
  await ledger.relay({ config: { ...testRelayConfig, freshMs: 60_000 } })
  await moved.until((received) => received.length > 0)
  await ledger.untilSettled()
  expect(receiver.received).toHaveLength(8)
  expect(moved.received.map(({ body }) => body.version)).toEqual([9])
})

test('a hook that is disabled gets nothing more, in the middle of a lane', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  whileFirstIsSent(() => ledger.rows('UPDATE hooks SET enabled = false WHERE id = $1', hook.id))
  await ledger.record(...three)
  await ledger.relay({ config })
  await ledger.untilTrue(`SELECT count(*) = 1 FROM deliveries WHERE state = 'succeeded'`)
  await ledger.untilTrue(`SELECT count(*) = 1 FROM lanes WHERE leased_by IS NULL`)
  expect(receiver.received).toHaveLength(1)
})

test('a hook that is deleted gets nothing more, and its lane is gone', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  whileFirstIsSent(() => ledger.rows('DELETE FROM hooks WHERE id = $1', hook.id))
  await ledger.record(...three)
  await ledger.relay({ config })
  await receiver.until((received) => received.length === 1)
  await ledger.untilSettled()
  const other = await anotherReceiver()
  await ledger.hook({ url: other.url })
  await ledger.record(userUpdated('u2'))
  await other.until((received) => received.length === 1)
  expect(receiver.received).toHaveLength(1)
})

test('a key that is ended at once signs nothing more, queued retries included', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  const key = newSigningKey()
  const { sealSigningKey } = hookSecrets(ledger.envelope)
  // As PATCH …/signing-key with overlapSeconds 0 does.
  whileFirstIsSent(
    () =>
      ledger.database.transaction(async (query) => {
        const old = { name: 'end-key', text: 'UPDATE hook_signing_keys SET expires_at = now() WHERE hook_id = $1' }
        const add = { name: 'add-key', text: 'INSERT INTO hook_signing_keys (id, hook_id, sealed) VALUES ($1, $2, $3)' }
        await query(old, [hook.id])
        await query(add, [newId(), hook.id, sealSigningKey(hook.id, key)])
      }),
    500,
  )
  await ledger.record(userUpdated('u1'))
  await ledger.relay({ config })
  await receiver.until((received) => received.length === 2)
  const [first, retry] = receiver.received
  expect([verifies(first!, hook.signingKey), verifies(first!, key)]).toEqual([true, false])
  expect([verifies(retry!, hook.signingKey), verifies(retry!, key)]).toEqual([false, true])
  expect(retry!.headers['webhook-signature']).not.toContain(' ')
})

test('changed headers hold from the next attempt on', async () => {
  const hook = await ledger.hook({ url: receiver.url, headers: { 'x-version': 'old' } })
  const { sealHeaders } = hookSecrets(ledger.envelope)
  const sealed = sealHeaders(hook.id, { 'x-version': 'new' })
  whileFirstIsSent(() => ledger.rows('UPDATE hooks SET sealed_headers = $1 WHERE id = $2', sealed, hook.id))
  await ledger.record(...three)
  await ledger.relay({ config })
  await receiver.until((received) => received.length === 3)
  expect(receiver.received.map(({ headers }) => headers['x-version'])).toEqual(['old', 'new', 'new'])
})

test('a test-send is sent at once though its hook is disabled, to where it says, once', async () => {
  const elsewhere = await anotherReceiver((_received, response) => void response.writeHead(500).end('broken'))
  const hook = await ledger.hook({ url: receiver.url, enabled: false })
  await ledger.relay({ config })
  const event = '01999999-7c1e-7d0a-9b57-3f1a6f0e2c11'
  const payload = Buffer.from('{"id":"x","event":"User.Created","version":1,"test":true}')
  await ledger.database.transaction((query) =>
    insertTestSend(query, {
      hookId: hook.id,
      eventId: event,
      type: 'User.Created',
      payload,
      target: { url: elsewhere.url, sealedHeaders: null },
    }),
  )
  await ledger.untilTrue(`SELECT state = 'dead' FROM deliveries`)
  await ledger.untilSettled()
  expect(elsewhere.received).toHaveLength(1)
  expect(elsewhere.received[0]!.headers['webhook-id']).toBe(event)
  expect(verifies(elsewhere.received[0]!, hook.signingKey)).toBe(true)
  expect(receiver.received).toEqual([])
  // It says nothing of the receiver.
  expect(await ledger.rows('SELECT failures, failing_since FROM hooks')).toEqual([{ failures: 0, failing_since: null }])
})

test('what is delivered just while retention gives it up for a disabled hook counts as delivered', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  const { database } = ledger
  await ledger.record(userUpdated('u1'))
  await database.transaction(async (query) => ingestEvents(query, inOrder(await lockNextPending(query, 1))))
  await ledger.rows(`UPDATE deliveries SET created_at = now() - interval '20 days'`)
  await ledger.rows(`UPDATE hooks SET enabled = false`)
  const succeed = `UPDATE deliveries SET state = 'succeeded', finished_at = now() WHERE hook_id = $1`
  let expiring: Promise<unknown> | undefined
  await database.transaction(async (query) => {
    await query(statement('test-succeed', succeed), [hook.id])
    expiring = database.transaction((other) => removeExpired(other, 14 * 86_400_000))
    await ledger.untilTrue(
      `SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
  })
  await expiring
  expect(await ledger.rows(`SELECT state FROM deliveries`)).toEqual([{ state: 'succeeded' }])
})
