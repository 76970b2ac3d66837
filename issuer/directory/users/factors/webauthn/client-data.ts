import { z } from 'zod'
import { Refused, requireThat } from './refusal.ts'

/** What an answer must be to. */
export interface Expected {
  /** Base64url, as it stood in the options. Whoever calls has used it up before, whatever comes of this. */
  challenge: string
  relyingParty: Pick<RelyingParty, 'id' | 'origins'>
}

/** For whom credentials are made. */
export interface RelyingParty {
  /** A domain: credentials belong to it. */
  id: string
  /** What authenticators show. */
  name: string
  /** Of the pages where credentials may be used. */
  origins: readonly string[]
}

/** The issuer as relying party; `origins` are further ones, below the same domain. */
export const relyingPartyOf = (baseUrl: string, origins: readonly string[] = []): RelyingParty => {
  const { hostname, origin } = new URL(baseUrl)
  return { id: hostname, name: hostname, origins: [...new Set([origin, ...origins])] }
}

// Browsers may say more (WebAuthn §5.8.1).
const clientData = z.object({
  type: z.string(),
  challenge: z.string(),
  origin: z.string(),
  crossOrigin: z.boolean().optional(),
  topOrigin: z.string().optional(),
})

/** What the browser says of the page (WebAuthn §5.8.1). Throws unless it is the right ceremony, challenge and page. */
export const requireClientData = (
  bytes: Buffer,
  type: 'webauthn.create' | 'webauthn.get',
  { challenge, relyingParty }: Expected,
): void => {
  const said = readClientData(bytes)
  requireThat(said.type === type, 'wrong_type')
  requireThat(said.challenge === challenge, 'wrong_challenge')
  requireThat(relyingParty.origins.includes(said.origin), 'wrong_origin')
  requireThat(said.crossOrigin !== true && said.topOrigin === undefined, 'cross_origin')
}

const readClientData = (bytes: Buffer): z.output<typeof clientData> => {
  try {
    return clientData.parse(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  } catch (error) {
    throw new Refused('malformed', { cause: error })
  }
}
