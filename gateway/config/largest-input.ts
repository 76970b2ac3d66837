import type { GatewayConfig } from './load.ts'

/** Of a policy's input as JSON without its body, in bytes. */
const withoutBody = 65_536

/** The same with the longest body that a route shows to its policy. */
export const largestInput = ({ routes }: Pick<GatewayConfig, 'routes'>): number =>
  withoutBody + Math.max(0, ...routes.map(({ policyBody }) => policyBody?.maxBytes ?? 0))
