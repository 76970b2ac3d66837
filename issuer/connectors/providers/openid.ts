import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import * as oauth from 'oauth4webapi'
import { z } from 'zod'
import { readCallback } from './callback.ts'
import { inStage } from './faults.ts'
import { FederationError } from './federation-error.ts'
import { createMetadataReader } from './metadata.ts'
import type { ProviderFetch } from './outbound.ts'
import type { BeginFederation, Claims, OpenIdProfile, ProviderMetadata } from './profile.ts'

/** What is kept between the request and its answer. */
const keptSchema = z.object({
  issuer: z.string(),
  state: z.string().min(1),
  nonce: z.string().min(1),
  verifier: z.string().min(43),
})

export interface OpenIdParty {
  connectorId: string
  profile: OpenIdProfile
  fetch: ProviderFetch
}

/** In seconds: clocks differ. */
const clockTolerance = 60
const tenantPlace = '{tenantid}'
const tenantForm = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

/** OpenID Connect by authorization code with PKCE. `oauth4webapi` does what is the same for all relying parties. */
export const createOpenIdProtocol = ({ now }: { now: () => Date }) => {
  const { read } = createMetadataReader({ now })
  const keys = new Map<string, oauth.JWKSCacheInput>()
  const metadataOf = ({ connectorId, profile, fetch }: OpenIdParty) => read(connectorId, profile, fetch)

  const clientOf = ({ profile }: OpenIdParty): oauth.Client => ({
    client_id: profile.clientId,
    [oauth.clockSkew]: Math.round((now().getTime() - Date.now()) / 1_000),
    [oauth.clockTolerance]: clockTolerance,
  })

  /** The address guard decides over plain http, and about every address. */
  const optionsFor = ({ connectorId, profile, fetch }: OpenIdParty, { jwks_uri: uri }: ProviderMetadata) => {
    // Of other addresses the keys are others.
    const place = `${connectorId} ${profile.discovery} ${uri}`
    const cache = keys.get(place) ?? {}
    if (!keys.has(place) && keys.size >= maxKeySets) keys.delete(keys.keys().next().value ?? '')
    keys.set(place, cache)
    return { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true, [oauth.jwksCache]: cache }
  }

  return {
    async begin(party: OpenIdParty, request: BeginFederation) {
      const metadata = await metadataOf(party)
      const { clientId, scope, parameters, again } = party.profile
      const [nonce, verifier] = [oauth.generateRandomNonce(), oauth.generateRandomCodeVerifier()]
      const url = new URL(metadata.authorization_endpoint)
      const asked = {
        ...parameters,
        ...(request.asksAgain && again),
        response_type: 'code',
        client_id: clientId,
        redirect_uri: request.redirectUri,
        scope,
        state: request.state,
        nonce,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
        ...(request.loginHint !== undefined && { login_hint: request.loginHint }),
      }
      for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value)
      const kept: z.output<typeof keptSchema> = { issuer: metadata.issuer, state: request.state, nonce, verifier }
      return { url: url.href, kept }
    },

    /** The checked claims of the ID token, with those of userinfo that it does not have. */
    async complete(
      party: OpenIdParty,
      answer: { kept: unknown; parameters: URLSearchParams; redirectUri: string },
    ): Promise<Claims> {
      const kept = keptSchema.safeParse(answer.kept)
      if (!kept.success) throw new FederationError('invalid_response', 'The answer is to another kind of request.')
      const { state, nonce, verifier, issuer } = kept.data
      const metadata = await metadataOf(party)
      if (metadata.issuer !== issuer)
        throw new FederationError('invalid_response', 'The connector leads to another issuer since the request.')
      const { profile } = party
      const client = clientOf(party)
      const options = optionsFor(party, metadata)

      // RFC 9207 §2.4: an answer that another provider gave never reaches this one's token endpoint.
      const named = answer.parameters.get('iss')
      const isOfTenant = named !== null && tenantIn(issuer, named) !== undefined
      const answering = isOfTenant ? { ...metadata, issuer: named } : metadata
      const callback = await readCallback(answering, client, answer.parameters, state)
      const response = await inStage('token', async () =>
        oauth.authorizationCodeGrantRequest(
          metadata,
          client,
          await profile.clientAuth(metadata),
          callback,
          answer.redirectUri,
          verifier,
          options,
        ),
      )
      const signer =
        issuer.includes(tenantPlace) && response.status === 200
          ? { ...metadata, issuer: await tenantIssuer(response, issuer, profile) }
          : metadata
      if (isOfTenant && response.status === 200 && signer.issuer !== named)
        throw new FederationError('invalid_response', 'The answer at the callback is of another tenant.')
      const tokens = await inStage('token', () =>
        oauth.processAuthorizationCodeResponse(signer, client, response, {
          expectedNonce: nonce,
          requireIdToken: true,
        }),
      )
      await inStage('signature', () => oauth.validateApplicationLevelSignature(signer, response, options))
      const claims: Claims = oauth.getValidatedIdTokenClaims(tokens) ?? {}
      checkClaims(claims, profile.clientId, now())
      if (metadata.userinfo_endpoint === undefined || profile.skipsUserinfo) return claims
      const userinfo = await inStage('userinfo', async () =>
        oauth.processUserInfoResponse(
          metadata,
          client,
          String(claims.sub),
          await oauth.userInfoRequest(metadata, client, tokens.access_token, options),
        ),
      )
      return together(claims, userinfo)
    },
  }
}

export type OpenIdProtocol = ReturnType<typeof createOpenIdProtocol>

/** Key sets in memory; the oldest is read again. */
const maxKeySets = 1_000

/** The tenant that an issuer names, when it is of this form; undefined for any other. */
const tenantIn = (form: string, issuer: string): string | undefined => {
  const [before = '', after] = form.split(tenantPlace)
  if (after === undefined || !issuer.startsWith(before) || !issuer.endsWith(after)) return undefined
  const tenant = issuer.slice(before.length, issuer.length - after.length)
  return tenantForm.test(tenant) ? tenant : undefined
}

/** Who must have signed, where tenants are issuers: told by the token itself, and held against the rest of it later. */
const tenantIssuer = async (response: Response, form: string, { isTenant }: OpenIdProfile): Promise<string> => {
  const { tid } = await response
    .clone()
    .json()
    .then((body) => decodeJwt(z.object({ id_token: z.string() }).parse(body).id_token))
    .catch((): { tid?: unknown } => ({}))
  if (typeof tid === 'string' && tenantForm.test(tid) && (isTenant?.(tid) ?? true))
    return form.replace(tenantPlace, tid)
  throw new FederationError('invalid_id_token', 'The ID token is of no tenant whose people may come.')
}

/** What OpenID Connect Core §3.1.3.7 leaves to the client: nobody else is trusted, and nothing is of the future. */
const checkClaims = (claims: Claims, clientId: string, now: Date): void => {
  const refuse = (text: string) => new FederationError('invalid_id_token', text)
  const { aud, azp, iat, sub } = claims
  if ([aud].flat().some((audience) => audience !== clientId)) throw refuse('The ID token is for others too.')
  if (azp !== undefined && azp !== clientId) throw refuse('The ID token was issued to another client.')
  if (typeof iat !== 'number' || iat > now.getTime() / 1_000 + clockTolerance)
    throw refuse('The ID token is of the future.')
  // OpenID Connect Core §2.
  if (typeof sub !== 'string' || !/^[\x20-\x7e]{1,255}$/.test(sub)) throw refuse('The ID token has no usable subject.')
}

/** An address and whether it is verified are said by the same one. */
const pairs = [
  ['email', 'email_verified'],
  ['phone_number', 'phone_number_verified'],
] as const

const together = (claims: Claims, userinfo: Claims): Claims => {
  const [signed, more] = [{ ...claims }, { ...userinfo }]
  for (const [address, isVerified] of pairs) delete (claims[address] === undefined ? signed : more)[isVerified]
  return { ...more, ...signed }
}
