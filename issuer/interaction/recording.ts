import { type EventRequest, type NewEvent, recordEvent } from '../../events/outbox.ts'
import type { Query } from '../../platform/database/database.ts'
import type { Recording } from '../base/recording.ts'
import type { Interaction } from './interaction-store.ts'

/** Records events of one interaction: each tells which, and of which application. */
export interface InteractionRecording extends Recording {
  trx: Query
}

export const recordingOf = (
  trx: Query,
  { id, event, client }: Interaction,
  request: EventRequest,
): InteractionRecording => {
  const circumstances = {
    interactionEvent: event,
    sessionId: id,
    userIp: request.ip,
    application: { id: client.id, type: client.type, name: client.name, description: client.description },
  }
  return {
    trx,
    record: (told) => recordEvent(trx, { ...told, extras: { ...circumstances, ...told.extras }, request } as NewEvent),
  }
}
