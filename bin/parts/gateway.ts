import type { GatewayConfig } from '../../gateway/config/load.ts'
import { type GatewaySource, startGateway } from '../../gateway/main.ts'
import type { Service } from '../cli/serve.ts'
import { hearHangups } from './hangup.ts'

/** At least as long as the longest `drain` that a configuration can ask for. In ms. */
const stopTimeoutMs = 85_000

/** The gateway, following the file it is configured by; SIGHUP reads it at once, and opens log files anew. */
export const openGateway = async (
  service: Service,
  options: {
    config: GatewayConfig
    source: GatewaySource
    opaBin: string | undefined
    portSetting?: string | undefined
  },
) => {
  const { opaBin, ...rest } = options
  const onHangup = hearHangups(service.lifecycle)
  const gateway = await startGateway({ ...service, ...rest, ...(opaBin !== undefined && { opaBin }) })
  service.lifecycle.onStop('gateway', gateway.close, stopTimeoutMs)
  onHangup(() => {
    void gateway.reload()
    gateway.reopenLogs()
  })
  return gateway
}
