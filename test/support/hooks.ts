import { expect } from 'vitest'
import { recordEvent } from '../../events/outbox.ts'
import { createPostgresBus } from '../../events/postgres-bus.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { silentLogger } from '../../platform/logger.ts'
import type { RelayConfig } from '../../relay/config.ts'
import { userUpdated } from './event-factory.ts'
import { startTestIssuer } from './issuer.ts'
import { startTestRelay, testRelayConfig } from './relay.ts'

const keyEncryptionKey = Buffer.alloc(32, 7)

/** An issuer, its hooks API, and relays on the same ledger. */
export const startHookTest = async ({ instances = 1 }: { instances?: number } = {}) => {
  let wake = () => {}
  const issuer = await startTestIssuer({
    instances,
    config: { keyEncryptionKey, webhookTargets: testRelayConfig },
    events: { wake: () => wake() },
  })
  const { database } = issuer
  const bus = createPostgresBus({ database, logger: silentLogger })
  wake = bus.wake
  const closers: (() => Promise<unknown>)[] = []

  const call = async (status: number, method: string, path: string, body?: unknown) => {
    const answer = await issuer.api(method, path, body)
    expect({ status: answer.status, body: answer.body }).toEqual({ status, body: answer.body })
    return answer.body
  }
  const states = async (hookId: string): Promise<string[]> =>
    (await call(200, 'GET', `/hooks/${hookId}/deliveries`)).map((row: { state: string }) => row.state)

  /** Resolves once relays have taken in everything. */
  const ingested = () => {
    const left = async () => (await database.pool.query('SELECT FROM outbox_pending')).rowCount
    return expect.poll(left, { interval: 10, timeout: 20_000 }).toBe(0)
  }

  return {
    issuer,
    wake: bus.wake,
    /** Calls the API and expects this status; answers the body. */
    call,
    /** States of the deliveries, newest first. */
    states,
    sql: async <Row extends object = Record<string, unknown>>(text: string) =>
      (await database.pool.query<Row>(text)).rows,
    create: ({ url, ...rest }: { url: string; [name: string]: unknown }) =>
      call(201, 'POST', '/hooks', { name: 'Test', events: ['User.Data.Updated'], config: { url }, ...rest }),
    /** One event of each of these users, committed one after the other. */
    async record(...userIds: string[]) {
      for (const id of userIds) await database.transaction((query) => recordEvent(query, userUpdated(id)))
      bus.wake()
    },
    ingested,
    /** Resolves once relays have taken in everything, and nothing of the hook is open. */
    async settled(hookId: string) {
      await ingested()
      const open = async () => (await states(hookId)).filter((state) => !closed.has(state))
      await expect.poll(open, { interval: 10, timeout: 20_000 }).toEqual([])
    },
    async relay(config: Partial<RelayConfig> = {}) {
      const envelope = createEnvelope({ current: keyEncryptionKey })
      const relay = await startTestRelay({ config: { ...testRelayConfig, ...config }, database, bus, envelope })
      closers.push(relay.close)
      return relay
    },
    async close() {
      for (const close of closers.splice(0).toReversed()) await close()
      await bus.close()
      await issuer.close()
    },
  }
}

const closed = new Set(['succeeded', 'dead', 'cancelled'])

export type HookTest = Awaited<ReturnType<typeof startHookTest>>
