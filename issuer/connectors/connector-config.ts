import { isIP } from 'node:net'
import type { Factory } from '../../deliveries/messages/factories.ts'
import type { TargetPolicy } from '../../platform/http/outbound.ts'
import { problem } from '../base/errors/problems.ts'
import { unmasked } from './connector.ts'

/** Reads configurations as they come from callers. */
export const createConfigReader = (targets: Pick<TargetPolicy, 'refusal'>) => {
  /** It is looked at again at every connect. */
  const refuseAddress = async (config: Record<string, unknown>): Promise<void> => {
    const { endpoint, host, issuer, cloudInstance } = config as Record<string, string | undefined>
    // Only its addresses matter: mail servers listen where webhooks must not go.
    const ofHost = host && `https://${isIP(host) === 6 ? `[${host}]` : host}/`
    const url = endpoint ?? issuer ?? cloudInstance ?? ofHost
    const refused = url === undefined ? undefined : await targets.refusal(url)
    if (refused !== undefined) throw problem('connector.target_not_allowed', { detail: refused })
  }

  /** `stored`: the secrets that masked ones stand for. Throws the problem of what does not fit. */
  return async (
    factory: Pick<Factory, 'config' | 'secrets'>,
    given: Record<string, unknown>,
    stored: Record<string, unknown> = {},
  ): Promise<Record<string, unknown>> => {
    const config = unmasked(factory, given, stored)
    if (config === undefined)
      throw problem('connector.invalid_config', {
        detail: 'config: where the connector leads changes, so its secrets must be given anew',
      })
    const parsed = factory.config.safeParse(config)
    if (!parsed.success) {
      // Names of members and what they must be; never what they are.
      const detail = parsed.error.issues.map(({ path, message }) => `config.${path.join('.')}: ${message}`).join('; ')
      throw problem('connector.invalid_config', { detail })
    }
    await refuseAddress(parsed.data)
    return parsed.data
  }
}

export type ReadConfig = ReturnType<typeof createConfigReader>
