import { announceLanes } from '../../../deliveries/lane-notice-store.ts'
import { logoutContext } from '../../../deliveries/logouts/logout.ts'
import { createBackOff } from '../../../platform/back-off.ts'
import { type Clock, toSeconds } from '../../../platform/clock.ts'
import type { Database } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import type { Logger } from '../../../platform/logger.ts'
import { createWakeUp, pause } from '../../../platform/wake-up.ts'
import { insertLog } from '../../base/audit/log-store.ts'
import { giveLogoutsUp, saveLogoutTokens, takeTokenless } from './logout-store.ts'
import type { LogoutTokenMint } from './logout-token.ts'

export interface LogoutsOptions {
  database: Pick<Database, 'transaction'>
  tokens: LogoutTokenMint
  envelope: Envelope
  now: Clock
  logger: Logger
}

export interface Logouts {
  /** An authorization may have ended. */
  wake(): void
  close(): Promise<void>
}

/** Deliveries of one transaction. */
const batch = 200
const pollMs = 1_000

/**
 * Makes the tokens of logouts that are due, for relays to send: one for each attempt, so that no application sees a
 * `jti` twice. What was refused, or could not be delivered for 15 minutes, is given up and told in the audit trail.
 * Every issuer does it.
 */
export const startLogouts = ({ database, tokens, envelope, now, logger }: LogoutsOptions): Logouts => {
  const wakeUp = createWakeUp()
  const stopping = new AbortController()
  const { signal } = stopping

  const makeTokens = () =>
    database.transaction(async (trx) => {
      const due = await takeTokenless(trx, { limit: batch, algorithms: tokens.algorithms() })
      const iat = toSeconds(now())
      const made = due.flatMap(({ authorizationId: id, userId: sub, clientId, algorithm }) => {
        const token = tokens.mint({ sub, clientId, sid: id, iat }, algorithm ?? undefined)
        return token === undefined ? [] : [{ id, sealed: envelope.seal(token, logoutContext(id)) }]
      })
      if (made.length === 0) return false
      await saveLogoutTokens(trx, made)
      await announceLanes(trx)
      return made.length === batch
    })

  const giveUp = () =>
    database.transaction(async (trx) => {
      const lost = await giveLogoutsUp(trx, batch)
      for (const { authorizationId, userId, clientId, attempts, error } of lost) {
        const payload = { authorizationId, attempts, error: error ?? 'No attempt was made.' }
        await insertLog(trx, { key: 'BackChannelLogout', result: 'Error', applicationId: clientId, userId, payload })
      }
      return lost.length === batch
    })

  const run = async () => {
    const backOff = createBackOff()
    while (!signal.aborted) {
      try {
        const isMore = (await makeTokens()) || (await giveUp())
        backOff.reset()
        if (!isMore) await wakeUp.wait(pollMs, signal)
      } catch (error) {
        logger.error({ err: error }, 'applications could not be told who signed out; trying again')
        await pause(backOff.next(), signal)
      }
    }
  }
  const ended = run()

  return {
    wake: wakeUp.wake,
    async close() {
      stopping.abort()
      await ended
    },
  }
}
