import type { GatewayConfig } from '../../gateway/config.ts'
import { startGateway } from '../../gateway/main.ts'
import type { Service } from '../serve.ts'

export const openGateway = async (service: Service, options: { config: GatewayConfig; opaBin: string | undefined }) => {
  const { config, opaBin } = options
  const gateway = await startGateway({ ...service, config, ...(opaBin !== undefined && { opaBin }) })
  service.lifecycle.onStop('gateway', () => gateway.close())
  return gateway
}
