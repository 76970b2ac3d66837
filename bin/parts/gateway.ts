import type { GatewayConfig } from '../../gateway/config.ts'
import { startGateway } from '../../gateway/main.ts'
import type { Service } from '../serve.ts'

export const openGateway = async (
  service: Service,
  options: { config: GatewayConfig; opaBin: string | undefined; portSetting?: string | undefined },
) => {
  const { opaBin, ...rest } = options
  const gateway = await startGateway({ ...service, ...rest, ...(opaBin !== undefined && { opaBin }) })
  service.lifecycle.onStop('gateway', () => gateway.close())
  return gateway
}
