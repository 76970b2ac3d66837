import { expect, test } from 'vitest'
import { createPostgresBus } from '../../events/postgres-bus.ts'
import { createDatabase } from '../../platform/database/database.ts'
import { createHealth } from '../../platform/health.ts'
import { newId } from '../../platform/ids.ts'
import { capturedLogger } from '../support/captured-logger.ts'
import { userUpdated } from '../support/event-factory.ts'
import { eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { fillDisk } from '../support/full-disk.ts'

eachWithLedger()

/** PostgreSQL is there, but short of something: room on its disk, connections. */

test('events that cannot be taken in for want of room on the disk wait, and are delivered in order once there is some', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay()
  const disk = await fillDisk(ledger.database.pool, 'deliveries')
  await ledger.record(userUpdated('u1'), userUpdated('u2'), userUpdated('u1'))
  await expect.poll(disk.refusals).toBeGreaterThanOrEqual(2)
  expect(await ledger.rows('SELECT FROM outbox_pending')).toHaveLength(3)

  await disk.free()
  await receiver.until((received) => received.length === 3)
  await ledger.untilSettled()
  const ofFirst = receiver.received.filter(({ body }) => body.data['id'] === 'u1')
  expect(ofFirst.map(({ body }) => body.version)).toEqual([1, 2])
  expect(receiver.received).toHaveLength(3)
})

test('a result that cannot be stored for want of room is kept until it can be: nothing is sent a second time', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay()
  const disk = await fillDisk(ledger.database.pool, 'delivery_attempts')
  await ledger.record(userUpdated('u1'), userUpdated('u1'))
  await expect.poll(disk.refusals).toBeGreaterThanOrEqual(2)
  expect(await ledger.rows('SELECT DISTINCT state, attempts FROM deliveries')).toEqual([
    { state: 'pending', attempts: 0 },
  ])

  await disk.free()
  await ledger.untilTrue(`SELECT count(*) = 2 FROM deliveries WHERE state = 'succeeded' AND attempts = 1`)
  await ledger.untilSettled()
  expect(receiver.received.map(({ body }) => body.version)).toEqual([1, 2])
})

/** A relay that connects as a user of its own. */
const relayOfItsOwnUser = async () => {
  const { logger, lines } = capturedLogger()
  const health = createHealth()
  const user = `relay_${newId()}`
  const { connection } = ledger
  await ledger.rows(`CREATE ROLE ${user} LOGIN PASSWORD '${user}' IN ROLE ${connection.user}`)
  const database = createDatabase({ connection: { ...connection, user, password: user }, logger })
  const bus = createPostgresBus({ database, logger })
  const relay = await ledger.relay({ database, bus, logger, health })
  return {
    lines,
    health,
    /** From now on it may have so many connections; those it has are gone. */
    async allow(connections: number | 'any') {
      await ledger.rows(`ALTER ROLE ${user} CONNECTION LIMIT ${connections === 'any' ? -1 : connections}`)
      await ledger.rows(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1`, user)
    },
    async stop() {
      await relay.close()
      await bus.close()
      await database.close()
      await ledger.rows(`DROP ROLE ${user}`)
    },
  }
}

test('a relay that gets no connection says so in a few lines, is not ready, and goes on when there are some', async () => {
  await ledger.hook({ url: receiver.url })
  const relay = await relayOfItsOwnUser()
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 1)
  await ledger.untilSettled()

  const before = relay.lines.length
  await relay.allow(0)
  await ledger.record(userUpdated('u1'), userUpdated('u2'))
  const said = () => JSON.stringify(relay.lines.slice(before))
  await expect
    .poll(said)
    .toMatch(/lanes could not be claimed.*too many connections|too many connections.*lanes could not be claimed/)
  expect((await relay.health.ready()).ok).toBe(false)
  expect(relay.lines.length - before).toBeLessThan(100)
  expect(receiver.received).toHaveLength(1)

  await relay.allow('any')
  await receiver.until((received) => received.length === 3)
  await ledger.untilSettled()
  const arrived = receiver.received.map(({ body }) => `${body.data['id']} ${body.version}`)
  expect(arrived.toSorted()).toEqual(['u1 1', 'u1 2', 'u2 1'])
  await relay.stop()
})
