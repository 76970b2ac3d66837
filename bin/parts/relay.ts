import type { EventBus } from '../../events/bus.ts'
import type { Database } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import type { RelayConfig } from '../../relay/config.ts'
import { startRelay } from '../../relay/main.ts'
import type { Service } from '../cli/serve.ts'

export const openRelay = async (
  service: Service,
  options: {
    config: RelayConfig
    database: Database
    bus: EventBus
    keys: { current: Uint8Array; previous?: Uint8Array | undefined }
  },
) => {
  const { keys, ...rest } = options
  const relay = await startRelay({ ...service, ...rest, envelope: createEnvelope(keys) })
  service.lifecycle.onStop('relay', () => relay.close(), 20_000)
  return relay
}
