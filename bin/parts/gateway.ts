import type { GatewayConfig } from '../../gateway/config/load.ts'
import { workersOf } from '../../gateway/config/worker-count.ts'
import { type FileSource, startGateway } from '../../gateway/main.ts'
import { startWorkers } from '../../gateway/workers/primary.ts'
import type { Service } from '../cli/serve.ts'
import { hearHangups } from './hangup.ts'

/** At least as long as the longest `drain` that a configuration can ask for. In ms. */
const stopTimeoutMs = 85_000

/**
 * The gateway, in one process or in several, following the file it is configured by; SIGHUP reads it at once, and opens
 * log files anew.
 */
export const openGateway = async (
  service: Service,
  options: {
    config: GatewayConfig
    source: FileSource
    opaBin: string | undefined
    portSetting?: string | undefined
  },
) => {
  const { opaBin, ...rest } = options
  const onHangup = hearHangups(service.lifecycle)
  const parts = { ...service, ...rest, ...(opaBin !== undefined && { opaBin }) }
  const gateway = await (workersOf(options.config) > 1
    ? startWorkers({ ...parts, name: 'gateway' })
    : startGateway(parts))
  service.lifecycle.onStop('gateway', gateway.close, stopTimeoutMs)
  onHangup(() => {
    void gateway.reload()
    gateway.reopenLogs()
  })
  return gateway
}
