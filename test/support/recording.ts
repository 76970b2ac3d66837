import { recordEvent } from '../../events/outbox.ts'
import type { Recording } from '../../issuer/base/recording.ts'
import type { Query } from '../../platform/database/database.ts'

const path = '/test'
const request = {
  ...{ ip: '203.0.113.7', userAgent: 'a browser', method: 'POST' },
  ...{ path, matchedRoute: path, params: {}, status: 200 },
}

/** Records events in the transaction, as if a request had caused them. */
export const recordingIn = (trx: Query): Recording => ({
  trx,
  record: (event) => recordEvent(trx, { ...event, request }),
})
