import type { GatewayConfig } from '../../gateway/config.ts'
import { type GatewaySource, type RunningGateway, startGateway } from '../../gateway/main.ts'
import type { Service } from '../serve.ts'

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
  let gateway: RunningGateway | undefined
  let missed = false
  const onHangup = () => {
    missed = gateway === undefined
    void gateway?.reload()
    gateway?.reopenLogs()
  }
  // From before the start until after the stop: a SIGHUP that nobody hears ends the process.
  process.on('SIGHUP', onHangup)
  service.lifecycle.onStop('SIGHUP', () => void process.off('SIGHUP', onHangup))
  gateway = await startGateway({ ...service, ...rest, ...(opaBin !== undefined && { opaBin }) })
  service.lifecycle.onStop('gateway', gateway.close, stopTimeoutMs)
  if (missed) onHangup()
  return gateway
}
