import { randomUUID } from 'node:crypto'
import { type AccessToken, type Context, errors, type Provider } from 'oidc-provider'
import { type PeerStore, type ResourceAccess, sha256 } from './oidc-store.ts'

/**
 * Impersonation by RFC 8693 as a careful engineer adds it to oidc-provider: every check before the atomic redemption,
 * the token signed before it and handed out only after it.
 */
export const tokenExchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'

export const tokenExchangeParameters = [
  'subject_token',
  'subject_token_type',
  'actor_token',
  'actor_token_type',
  'requested_token_type',
  'resource',
  'scope',
]

const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

type Dependencies = { provider: Provider; store: PeerStore }

export const tokenExchange =
  ({ provider, store }: Dependencies) =>
  async (context: Context): Promise<void> => {
    const { client, entity } = context.oidc
    const { subjectToken, actorToken, resource, scope: requested } = parameters(context)

    const hash = sha256(subjectToken)
    const [subject, actor] = await Promise.all([
      store.findSubject(hash, resource),
      actorToken === undefined ? undefined : findActor({ provider, store }, actorToken),
    ])
    if (!subject || subject.suspended || subject.expired || subject.consumed) throw unusable()
    if (subject.ttl === null) throw new errors.InvalidTarget()
    const scope = grantedScope(requested, subject)

    const sessionId = randomUUID()
    context.state['claims'] = { sid: sessionId, ...(actor && { act: actor }) }
    const info = {
      scope: subject.granted.join(' '),
      audience: resource,
      accessTokenTTL: subject.ttl,
      accessTokenFormat: 'jwt',
      jwt: { sign: { alg: 'ES256' } },
    } as const
    const token = new provider.AccessToken({
      accountId: subject.userId,
      client,
      gty: 'token_exchange',
      scope,
      resourceServer: new provider.ResourceServer(resource, info),
    })
    entity.call(context.oidc, 'AccessToken', token)
    const value = await token.save()

    const redemption = {
      token: hash,
      sessionId,
      actorId: actor?.sub ?? null,
      clientId: client.clientId,
      resource,
      scope,
    }
    if (!(await store.redeem(redemption))) throw unusable()
    context.body = {
      access_token: value,
      issued_token_type: accessTokenType,
      token_type: 'Bearer',
      expires_in: token.expiration,
      scope,
    }
  }

const unusable = () => new errors.InvalidGrant('the subject token is unknown, expired or used')

const parameters = ({ oidc: { params } }: Context) => {
  const { subject_token: subjectToken, actor_token: actorToken, resource } = params
  if (!subjectToken || !params['subject_token_type']) throw new errors.InvalidRequest('missing required parameter(s)')
  if (params['subject_token_type'] !== accessTokenType) throw new errors.InvalidRequest('unknown subject_token_type')
  if ((params['requested_token_type'] ?? accessTokenType) !== accessTokenType) {
    throw new errors.InvalidRequest('unknown requested_token_type')
  }
  // RFC 8693 §2.1: required with actor_token, forbidden without.
  const actorTokenType = actorToken === undefined ? undefined : accessTokenType
  if (params['actor_token_type'] !== actorTokenType) throw new errors.InvalidRequest('actor_token_type does not fit')
  if (!resource) throw new errors.InvalidTarget('resource is required')
  return { subjectToken, actorToken, resource, scope: params['scope'] ?? '' }
}

type Actor = { sub: string; act?: Actor }

/** RFC 8693 §4.1: who acts, and for whom that one acts already; at most four deep. */
const findActor = async ({ provider, store }: Dependencies, actorToken: string): Promise<Actor> => {
  const token = await provider.AccessToken.find(actorToken)
  if (!token?.scopes.has('openid') || !(await store.isLiveUser(token.accountId))) {
    throw new errors.InvalidGrant('the actor token is not usable')
  }
  const actor = { sub: token.accountId, ...previousActor(token) }
  if (depth(actor) > 4) throw new errors.InvalidGrant('too many actors')
  return actor
}

const previousActor = ({ extra }: AccessToken): { act?: Actor } =>
  extra?.['act'] === undefined ? {} : { act: extra['act'] as Actor }

const depth = ({ act }: Actor): number => 1 + (act ? depth(act) : 0)

/** Undefined names are refused, defined but not granted ones left out. */
export const grantedScope = (requested: string, { defined, granted }: ResourceAccess): string => {
  const names = requested.split(' ').filter(Boolean)
  const unknown = names.find((name) => !defined.includes(name) && name !== 'openid')
  if (unknown !== undefined) throw new errors.InvalidScope('the resource defines no such scope', unknown)
  return names.filter((name) => granted.includes(name)).join(' ')
}
