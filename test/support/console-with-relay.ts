import { createPostgresBus } from '../../events/postgres-bus.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { silentLogger } from '../../platform/logger.ts'
import type { RelayConfig } from '../../relay/config.ts'
import { type ConsoleInChromium, startConsoleInChromium } from './console-in-chromium.ts'
import { startTestRelay, testRelayConfig } from './relay.ts'

export interface ConsoleWithRelay extends ConsoleInChromium {
  /** Instead of the one that runs. */
  relay(config?: Partial<RelayConfig>): Promise<void>
}

/** The console on an issuer whose events a relay delivers, to receivers on this machine too. */
export const startConsoleWithRelay = async (): Promise<ConsoleWithRelay> => {
  const keyEncryptionKey = Buffer.alloc(32, 7)
  let wake = () => {}
  const app = await startConsoleInChromium({
    config: { keyEncryptionKey, webhookTargets: testRelayConfig },
    events: { wake: () => wake() },
  })
  const { database } = app.home.issuer
  const bus = createPostgresBus({ database, logger: silentLogger })
  wake = bus.wake
  let running: { close(): Promise<void> } | undefined
  return {
    ...app,
    async relay(config = {}) {
      await running?.close()
      const envelope = createEnvelope({ current: keyEncryptionKey })
      running = await startTestRelay({ config: { ...testRelayConfig, ...config }, database, bus, envelope })
    },
    async close() {
      await running?.close()
      await bus.close()
      await app.close()
    },
  }
}
