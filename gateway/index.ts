/**
 * `surrogate/gateway`: the gateway for programs that run it themselves. It needs no database and no message bus.
 * What is exported here keeps its meaning within a major version; nothing else of the package can be imported.
 */
export { createHealth, type Health, type HealthCheck, type HealthResult } from '../platform/health.ts'
export { createLogger, type Logger, silentLogger } from '../platform/logger.ts'
export { createMetrics, type Metrics } from '../platform/metrics.ts'
export { StartupError } from '../platform/startup-error.ts'
export { loadPolicies, type PolicySet, type PolicySource, watchPolicies } from '../policies/decide.ts'
export {
  type Guard,
  type IssuerOptions,
  type ProtectOptions,
  protect,
  type RequestAuth,
  type RouteOptions,
} from './express.ts'
export {
  createGateway,
  type Gateway,
  type GatewayConfig,
  type GatewayOptions,
  loadGatewayConfig,
  type PolicyProvider,
  parseGatewayConfig,
  startGateway,
} from './main.ts'
