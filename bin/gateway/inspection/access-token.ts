import { z } from 'zod'
import { basicAuthorization } from '../../../gateway/caller/basic-authorization.ts'
import type { GatewayConfig } from '../../../gateway/config/load.ts'
import { Secret } from '../../../platform/secret.ts'
import { StartupError } from '../../../platform/startup-error.ts'
import { secretFile } from '../../login/password.ts'

/** What a token comes from: never the command line, which others on the machine can read. */
export interface TokenSources {
  tokenFile: string | undefined
  token: Secret | undefined
  client: { id: string; secret: Secret } | undefined
}

/** Gives the token to send. Asked again when one was refused or has expired. */
export interface AccessToken {
  get(): Promise<Secret>
  /** Whether asking again may give another one. */
  readonly renewable: boolean
}

const timeoutMs = 10_000

/** @param config read only for client credentials. Throws `StartupError`. */
export const accessToken = (
  { tokenFile, token, client }: TokenSources,
  config: () => Promise<GatewayConfig>,
): AccessToken => {
  if (tokenFile !== undefined) return { renewable: tokenFile !== '-', get: () => tokenOf(tokenFile) }
  if (token) return { renewable: false, get: async () => token }
  if (client) return { renewable: true, get: async () => clientCredentials(client, await config()) }
  throw new StartupError('A token is needed to inspect a gateway.', {
    hint: 'Set INSPECTION_CLIENT_ID and INSPECTION_CLIENT_SECRET, or INSPECTION_TOKEN, or name a --token-file.',
  })
}

const tokenOf = async (file: string): Promise<Secret> => {
  const token = await secretFile(file)
  if (token.reveal() !== '') return token
  throw new StartupError(`${file} holds no token.`, { hint: 'Write the access token alone into it.' })
}

const issued = z.object({ access_token: z.string().min(1) })
const refused = z.object({ error: z.string().regex(/^[a-z_]{1,64}$/) })

/** RFC 6749 §4.4, with the resource of RFC 8707. */
const clientCredentials = async (
  client: { id: string; secret: Secret },
  { inspection, issuers, ...config }: GatewayConfig,
): Promise<Secret> => {
  const issuer = issuers.find(({ issuer: one }) => inspection?.route.issuers.includes(one))
  if (!inspection || !issuer)
    throw new StartupError(`${config.file} does not say whose tokens may inspect.`, {
      hint: 'Client credentials need inspection: { audience } and its issuer; else give a token.',
    })
  const endpoint = issuer.tokenEndpoint ?? `${issuer.issuer}/token`
  const answer = await fetch(endpoint, {
    method: 'POST',
    redirect: 'error',
    headers: { authorization: basicAuthorization(client) },
    body: new URLSearchParams({ grant_type: 'client_credentials', resource: inspection.audience, scope: 'inspect' }),
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((cause) => {
    throw new StartupError(`The issuer does not answer at ${endpoint}.`, { hint: 'Is it running?', exitCode: 3, cause })
  })
  const body: unknown = await answer.json().catch(() => undefined)
  const token = issued.safeParse(body)
  if (answer.ok && token.success) return new Secret(token.data.access_token)
  const error = refused.safeParse(body)
  const why = error.success ? error.data.error : `status ${answer.status}`
  throw new StartupError(`The issuer at ${endpoint} gave ${client.id} no token: ${why}.`, {
    hint:
      why === 'invalid_client'
        ? 'Look at INSPECTION_CLIENT_ID and INSPECTION_CLIENT_SECRET.'
        : `The application needs the resource ${inspection.audience} with the scope inspect.`,
    exitCode: answer.status >= 500 ? 3 : 2,
  })
}
