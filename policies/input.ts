import { z } from 'zod'
import { isImpersonationSid } from '../platform/jwt/sid.ts'
import { PolicyError } from './engine/index.ts'

/**
 * What a gateway policy is asked with (`version` 1). A member without a value is absent, never null or empty. With
 * `auth: none`, `token`, `subject`, `actor` and `client` are absent. Strings are the canonical ones that route and
 * upstream use. `input-schema.json` is generated from this schema.
 */
export const policyInputSchema = z.strictObject({
  version: z.literal(1),
  request: z.strictObject({
    id: z.string(),
    method: z.string(),
    scheme: z.string(),
    host: z.string(),
    path: z.string(),
    segments: z.array(z.string()),
    folded: z
      .strictObject({ path: z.string(), segments: z.array(z.string()) })
      .describe(
        'Path and segments in the one spelling of all that the upstream takes for the same; what rules compare literals with.',
      ),
    query: z.record(z.string(), z.array(z.string())),
    headers: z.record(z.string(), z.array(z.string())).describe('Only those that the route lists in policyHeaders.'),
    clientIp: z.string(),
    body: z
      .unknown()
      .optional()
      .describe('The JSON that was sent, on routes with policyBody; absent when nothing was.'),
  }),
  route: z.strictObject({
    id: z.string(),
    params: z.record(z.string(), z.string()),
    scopes: z.array(z.string()).describe('All of them are needed.'),
    audience: z.array(z.string()),
    impersonation: z.enum(['allow', 'read-only', 'deny']),
    context: z.record(z.string(), z.unknown()).describe('Free data from the route.'),
  }),
  token: z
    .strictObject({
      iss: z.string(),
      aud: z.array(z.string()),
      scopes: z.array(z.string()),
      jti: z.string().optional(),
      sid: z.string().optional().describe('The impersonation session, or what the person has signed in to.'),
      impersonation: z.boolean().describe('Whether sid is one of an impersonation session.'),
      acr: z.string().optional().describe('How the user signed in.'),
      amr: z.array(z.string()).optional().describe('With what the user signed in (RFC 8176).'),
      auth_time: z.number().optional().describe('When the user signed in, in seconds since 1970.'),
      iat: z.number().optional(),
      exp: z.number(),
      claims: z.record(z.string(), z.unknown()).describe('Every verified claim.'),
    })
    .optional(),
  subject: z.strictObject({ id: z.string() }).optional(),
  actor: z
    .strictObject({
      id: z.string().describe('Who acts: the outermost act claim.'),
      chain: z.array(z.string()).describe('Every actor, the present one first.'),
    })
    .optional(),
  client: z.strictObject({ id: z.string() }).optional(),
  organization: z.strictObject({ id: z.string() }).optional(),
  tls: z
    .strictObject({
      version: z.string().describe('1.2 or 1.3.'),
      cipher: z.string().describe("IANA's name of the cipher suite."),
      serverName: z.string().optional().describe('The name that the client asked for (SNI).'),
      clientCertificate: z.strictObject({
        subject: z.string().describe('Distinguished name (RFC 4514).'),
        issuer: z.string().describe('Distinguished name (RFC 4514).'),
        serial: z.string().describe('Hexadecimal, lower-case.'),
        thumbprint: z.string().describe('SHA-256, base64url: what x5t#S256 says in tokens (RFC 8705).'),
        names: z
          .strictObject({ dns: z.array(z.string()), uri: z.array(z.string()), email: z.array(z.string()) })
          .describe('Of the subjectAltName, in its order.'),
        notAfter: z.number().describe('When it expires, in seconds since 1970.'),
      }),
    })
    .optional()
    .describe("The client's own connection to the gateway, when a verified client certificate came with it."),
  now: z.number().describe('Seconds since 1970, the same for the whole decision.'),
})

export type PolicyInput = z.infer<typeof policyInputSchema>

/** The part of the input that a verified token gives. */
export type PrincipalInput = Pick<PolicyInput, 'token' | 'subject' | 'actor' | 'client' | 'organization'>

/**
 * Verified claims → `token`, `subject`, `actor`, `client`, `organization`. Throws `PolicyError` when a claim that
 * decides has another shape than its RFC gives it (RFC 7519 §4.1, RFC 8693 §4.1 and §4.2): an unreadable `act` must not
 * look like nobody acting.
 */
export const principalInput = (claims: Readonly<Record<string, unknown>>): PrincipalInput => {
  const aud = claims['aud']
  const sub = optional(claims, 'sub', isString)
  const clientId = optional(claims, 'client_id', isString) ?? optional(claims, 'azp', isString)
  const organizationId = optional(claims, 'organization_id', isString)
  const jti = optional(claims, 'jti', isString)
  const sid = optional(claims, 'sid', isString)
  const acr = readable(claims, 'acr', isString)
  const amr = readable(claims, 'amr', isStringList)
  const authTime = readable(claims, 'auth_time', isNumber)
  const iat = optional(claims, 'iat', isNumber)
  const chain = actorChain(claims['act'])
  return {
    token: {
      iss: needed(claims, 'iss', isString),
      aud: isString(aud) ? [aud] : needed(claims, 'aud', isStringList),
      scopes: (optional(claims, 'scope', isString) ?? '').split(' ').filter((scope) => scope !== ''),
      ...(jti !== undefined && { jti }),
      ...(sid !== undefined && { sid }),
      impersonation: isImpersonationSid(sid),
      ...(acr !== undefined && { acr }),
      ...(amr !== undefined && { amr }),
      ...(authTime !== undefined && { auth_time: authTime }),
      ...(iat !== undefined && { iat }),
      exp: needed(claims, 'exp', isNumber),
      claims,
    },
    ...(sub !== undefined && { subject: { id: sub } }),
    ...(chain[0] !== undefined && { actor: { id: chain[0], chain } }),
    ...(clientId !== undefined && { client: { id: clientId } }),
    ...(organizationId !== undefined && { organization: { id: organizationId } }),
  }
}

/** Deeper chains are refused wherever they come from; our own issuer makes at most 4. */
const deepestChain = 16

const actorChain = (act: unknown): string[] => {
  const chain: string[] = []
  for (let at = act; at !== undefined; at = (at as { act?: unknown }).act) {
    const actor = typeof at === 'object' && at !== null ? (at as { sub?: unknown }).sub : undefined
    if (!isString(actor) || chain.length === deepestChain) throw new PolicyError('the claim act is not readable')
    chain.push(actor)
  }
  return chain
}

const isString = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isStringList = (value: unknown): value is string[] => Array.isArray(value) && value.every(isString)

const optional = <T>(
  claims: Readonly<Record<string, unknown>>,
  name: string,
  is: (value: unknown) => value is T,
): T | undefined => (claims[name] === undefined ? undefined : needed(claims, name, is))

/**
 * For claims whose absence means that nothing was proven. Issuers differ in the types of these (AD FS has a date in
 * `auth_time`), and their tokens are good for everything that does not ask.
 */
const readable = <T>(
  claims: Readonly<Record<string, unknown>>,
  name: string,
  is: (value: unknown) => value is T,
): T | undefined => {
  const value = claims[name]
  return is(value) ? value : undefined
}

const needed = <T>(claims: Readonly<Record<string, unknown>>, name: string, is: (value: unknown) => value is T): T => {
  const value = claims[name]
  if (!is(value)) throw new PolicyError(`the claim ${name} is not readable`)
  return value
}
