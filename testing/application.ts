import { hash, randomBytes } from 'node:crypto'
import { createLocalJWKSet, decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose'
import { z } from 'zod'
import type { Secret } from '../platform/secret.ts'
import type { Answer } from './browser.ts'
import { SignInFailed, type SignInOptions } from './step.ts'

/** The application's half of a sign-in: OpenID Connect's code flow with PKCE, and what it believes of the answers. */

const metadataSchema = z.object({
  issuer: z.string(),
  authorization_endpoint: z.url(),
  token_endpoint: z.url(),
  jwks_uri: z.url(),
  device_authorization_endpoint: z.url().optional(),
  revocation_endpoint: z.url().optional(),
  authorization_response_iss_parameter_supported: z.boolean().default(false),
  id_token_signing_alg_values_supported: z.array(z.string()).optional(),
})
export type Metadata = z.infer<typeof metadataSchema>

/** OpenID Connect Discovery 1.0 §4. */
export const discover = async ({ issuer, browser }: Pick<SignInOptions, 'issuer' | 'browser'>): Promise<Metadata> => {
  const base = issuer.href.replace(/\/$/, '')
  const answer = await browser.call(new URL(`${base}/.well-known/openid-configuration`))
  const parsed = metadataSchema.safeParse(answer.status === 200 ? json(answer) : undefined)
  if (!parsed.success) {
    throw new SignInFailed(
      `${base} tells nothing of a sign-in: its discovery answered ${answer.status}. The address of an issuer ends in /oidc.`,
    )
  }
  const metadata = parsed.data
  // §4.3: whoever answers must be who was asked.
  if (metadata.issuer !== base) throw new SignInFailed(`The issuer at ${base} says that it is ${metadata.issuer}.`)
  const { authorization_endpoint, token_endpoint, jwks_uri, device_authorization_endpoint, revocation_endpoint } =
    metadata
  for (const endpoint of [
    ...[authorization_endpoint, token_endpoint, jwks_uri, device_authorization_endpoint, revocation_endpoint],
  ]) {
    if (endpoint !== undefined && new URL(endpoint).origin !== issuer.origin)
      throw new SignInFailed(`${endpoint} is at another address than its issuer: no password is sent there.`)
  }
  return metadata
}

const random = () => randomBytes(32).toString('base64url')

/** OpenID Connect Core §3.1.2.1, RFC 7636 §4.3, RFC 8707 §2. */
export const authorizationRequest = (options: SignInOptions, metadata: Metadata) => {
  const { clientId, redirectUri, scope, resources, parameters } = options
  const [state, nonce, verifier] = [random(), random(), random()]
  const url = new URL(metadata.authorization_endpoint)
  const members = {
    client_id: clientId,
    response_type: 'code',
    redirect_uri: redirectUri,
    scope,
    state,
    nonce,
    code_challenge: hash('sha256', verifier, 'base64url'),
    code_challenge_method: 'S256',
    ...parameters,
  }
  for (const [name, value] of Object.entries(members)) if (value !== undefined) url.searchParams.append(name, value)
  for (const resource of resources) url.searchParams.append('resource', resource)
  return { url, state, nonce, verifier }
}

/**
 * RFC 6749 §4.1.2, RFC 9207 §2.4: before anything else is believed, the answer must be of this request and this issuer.
 */
export const codeOf = ({ searchParams }: URL, expected: { state: string; metadata: Metadata }): string => {
  const { state, metadata } = expected
  const only = (name: string): string | undefined => {
    const values = searchParams.getAll(name)
    if (values.length > 1) throw new SignInFailed(`The answer to the application names ${name} more than once.`)
    return values[0]
  }
  if (only('state') !== state) throw new SignInFailed('The answer to the application has another state.')
  const iss = only('iss')
  if (iss !== metadata.issuer && (iss !== undefined || metadata.authorization_response_iss_parameter_supported))
    throw new SignInFailed(
      `The answer to the application is of ${iss === undefined ? 'no issuer' : JSON.stringify(iss)}.`,
    )
  const error = only('error')
  if (error !== undefined) {
    const description = only('error_description')
    throw new SignInFailed(
      printable(`The application is told ${error}${description === undefined ? '' : `: ${description}`}`),
    )
  }
  const code = only('code')
  if (code === undefined) throw new SignInFailed('The answer to the application holds neither a code nor an error.')
  return code
}

export const tokenAnswer = z.looseObject({
  access_token: z.string(),
  token_type: z.string(),
  expires_in: z.number().optional(),
  scope: z.string().optional(),
  refresh_token: z.string().optional(),
  id_token: z.string().optional(),
})
export type TokenAnswer = z.infer<typeof tokenAnswer>

/** RFC 6749 §4.1.3; RFC 8707 §2.2: a token is for one resource, the first that was asked for. */
export const redeem = async (
  options: SignInOptions,
  { token_endpoint }: Metadata,
  { code, verifier }: { code: string; verifier: string },
): Promise<TokenAnswer> => {
  const { browser, clientId, clientSecret, redirectUri, resources } = options
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
    client_id: clientId,
    ...(resources[0] !== undefined && { resource: resources[0] }),
  })
  const authorization = clientSecret && basic(clientId, clientSecret)
  const answer = await browser.call(new URL(token_endpoint), { form, authorization })
  const parsed = tokenAnswer.safeParse(json(answer))
  if (answer.status !== 200 || !parsed.success)
    throw new SignInFailed(`The token endpoint answered ${answer.status}.${errorIn(answer)}`)
  return parsed.data
}

/** RFC 6749 §2.3.1: both are form-encoded first. */
const basic = (id: string, secret: Secret): string => {
  const encoded = (text: string) => new URLSearchParams([['', text]]).toString().slice(1)
  return `Basic ${Buffer.from(`${encoded(id)}:${encoded(secret.reveal())}`).toString('base64')}`
}

/** OpenID Connect Core §3.1.3.7. */
export const verifyIdToken = async (
  { browser, clientId }: Pick<SignInOptions, 'browser' | 'clientId'>,
  { issuer, jwks_uri, id_token_signing_alg_values_supported: supported }: Metadata,
  idToken: string,
  nonce: string | undefined,
): Promise<JWTPayload> => {
  const asymmetric = ['ES256', 'RS256', 'EdDSA']
  const keys = json(await browser.call(new URL(jwks_uri)))
  try {
    const { payload } = await jwtVerify(idToken, createLocalJWKSet(keys as never), {
      issuer,
      audience: clientId,
      algorithms: supported?.filter((name) => asymmetric.includes(name)) ?? asymmetric,
      requiredClaims: ['sub', 'iat', 'exp'],
    })
    if (payload['nonce'] !== nonce) throw new SignInFailed('The ID token has another nonce.')
    return payload
  } catch (cause) {
    if (cause instanceof SignInFailed) throw cause
    const because = cause instanceof errors.JOSEError ? cause.message : 'it cannot be read'
    throw new SignInFailed(`The ID token is not valid: ${because}.`, { cause })
  }
}

export const claimsOf = (token: string): JWTPayload | undefined => {
  try {
    return decodeJwt(token)
  } catch {
    // Opaque.
    return undefined
  }
}

export const json = ({ body }: Answer): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

export const oauthError = z.object({
  error: z.string(),
  error_description: z.string().optional(),
  reason: z.string().optional(),
})

/** What an error of OAuth says, to be appended. */
export const errorIn = (answer: Answer): string => {
  const { data } = oauthError.safeParse(json(answer))
  if (!data) return ''
  const { error, error_description: description, reason } = data
  return printable(
    ` ${error}${reason === undefined ? '' : ` (${reason})`}${description === undefined ? '' : `: ${description}`}`,
  )
}

const printable = (text: string): string => text.replace(/\p{Cc}+/gu, ' ').slice(0, 400)
