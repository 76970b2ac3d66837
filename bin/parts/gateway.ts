import type { GatewayConfig } from '../../gateway/config.ts'
import { type GatewaySource, startGateway } from '../../gateway/main.ts'
import type { Service } from '../serve.ts'

/** At least as long as the longest `drain` that a configuration can ask for. In ms. */
const stopTimeoutMs = 85_000

/** The gateway, following the file it is configured by; SIGHUP reads it at once. */
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
  const gateway = await startGateway({ ...service, ...rest, ...(opaBin !== undefined && { opaBin }) })
  service.lifecycle.onStop('gateway', () => gateway.close(), stopTimeoutMs)
  const reload = () => void gateway.reload()
  process.on('SIGHUP', reload)
  service.lifecycle.onStop('reloads', () => void process.off('SIGHUP', reload))
  process.on('SIGHUP', gateway.reopenLogs)
  service.lifecycle.onStop('log files', () => void process.off('SIGHUP', gateway.reopenLogs))
  return gateway
}
