import { hash } from 'node:crypto'
import { request } from 'undici'
import { z } from 'zod'
import type { Clock } from '../../platform/clock.ts'
import { createBoundedAgent } from '../../platform/http/bounded-client.ts'
import { readWhole } from '../../platform/http/read-whole.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { Secret } from '../../platform/secret.ts'
import { invalidToken } from '../refusals/challenges.ts'
import { problem } from '../refusals/problems.ts'
import type { RoutedRequest, Stage } from '../request/request-context.ts'
import { basicAuthorization } from './basic-authorization.ts'
import { createTokenAnswers, type TokenAnswer } from './token-answers.ts'

/** Turns a personal access token into an access token for a resource. */
export interface PersonalAccessTokens {
  /**
   * The JWT, at once when it is known. Throws 401 `invalid_token` for a token that the issuer refuses, 503
   * `issuer_unavailable` when it cannot be asked or does not let this gateway ask.
   */
  exchange(token: string, resource: string, scope: string): string | Promise<string>
  close(): Promise<void>
}

export interface PersonalAccessTokensOptions {
  /** Where tokens are exchanged. */
  tokenEndpoint: string
  /** The gateway's own. */
  client: { id: string; secret: Secret }
  metrics: Metrics
  now: Clock
}

/**
 * How long an exchanged token serves without asking again: by then a deleted personal access token is refused. In ms.
 */
const keepMs = 60_000
/** How long a refusal is remembered, so that whoever keeps trying asks the issuer no more than this often. In ms. */
const keepRefusalMs = 5_000
/** For one exchange as a whole, in ms. */
const timeoutMs = 5_000
const maxBytes = 65_536

const issued = z.object({ access_token: z.string().min(1), expires_in: z.number().positive() })
const refused = z.object({ error: z.string() })

export const createPersonalAccessTokens = (options: PersonalAccessTokensOptions): PersonalAccessTokens => {
  const { tokenEndpoint, client, metrics, now } = options
  const dispatcher = createBoundedAgent({ connections: 32, maxBodyBytes: 2 * maxBytes })
  const counter = metrics.counter(
    'surrogate_gateway_personal_access_tokens_total',
    'Personal access tokens exchanged at the issuer, by outcome',
    ['outcome'],
  )
  const answers = createTokenAnswers<string>({ now })

  const ask = async (token: string, resource: string, scope: string): Promise<TokenAnswer<string>> => {
    const answer = await request(tokenEndpoint, {
      dispatcher,
      method: 'POST',
      signal: AbortSignal.timeout(timeoutMs),
      headers: { authorization: basicAuthorization(client), 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: token,
        subject_token_type: 'urn:logto:token-type:personal_access_token',
        resource,
        scope,
      }).toString(),
    })
    const text = await readWhole(answer.body, maxBytes, () => new Error('the answer of the issuer is too large'))
    const body: unknown = JSON.parse(text.toString())
    if (answer.statusCode === 200) {
      const { access_token, expires_in } = issued.parse(body)
      const until = now().getTime() + Math.min(keepMs, expires_in * 1000)
      return { answer: access_token, until, size: access_token.length }
    }
    const { error } = refused.parse(body)
    // Every other error is about this gateway or its routes: nothing the caller could change.
    if (error === 'invalid_grant') return { answer: undefined, until: now().getTime() + keepRefusalMs, size: 0 }
    throw new Error(`the issuer answered ${answer.statusCode} ${error}`)
  }

  const askCounted = async (...asked: Parameters<typeof ask>): Promise<TokenAnswer<string>> => {
    try {
      const told = await ask(...asked)
      counter.inc({ outcome: told.answer === undefined ? 'refused' : 'issued' })
      return told
    } catch (cause) {
      counter.inc({ outcome: 'failed' })
      throw problem('issuer_unavailable', { cause })
    }
  }

  return {
    exchange(token, resource, scope) {
      const key = hash('sha256', JSON.stringify([token, resource, scope]), 'base64')
      const told = answers.get(key, () => askCounted(token, resource, scope))
      return told instanceof Promise ? told.then(tokenOf) : tokenOf(told)
    },
    close: () => dispatcher.destroy(),
  }
}

const tokenOf = ({ answer }: TokenAnswer<string>): string => {
  if (answer === undefined) throw invalidToken('The personal access token is not valid.')
  return answer
}

/** RFC 6750 §2.1 with a value that only a personal access token has, of a length that is worth asking about. */
const personalAccessToken = /^bearer +(pat_[\w-]{16,256}) *$/i

export interface ExchangePersonalAccessTokensParts {
  /** By issuer: those that have a client. Empty when no route accepts them. */
  personalAccessTokens: ReadonlyMap<string, PersonalAccessTokens>
}

/**
 * On routes that accept personal access tokens the JWT takes the place of one, for everything that follows: it is
 * verified as any other, and the upstream gets it and never the personal access token. The first issuer of the route
 * that has a client is asked, and no other.
 */
export const createExchangePersonalAccessTokens =
  ({ personalAccessTokens }: ExchangePersonalAccessTokensParts): Stage<RoutedRequest> =>
  ({ route, headers }) => {
    const { acceptPersonalAccessTokens, audience, scopes, issuers } = route
    if (!acceptPersonalAccessTokens) return
    const token = personalAccessToken.exec(headers.authorization ?? '')?.[1]
    if (token === undefined) return
    const replace = (jwt: string) => {
      headers.authorization = `Bearer ${jwt}`
    }
    const [issuer] = issuers.flatMap((one) => personalAccessTokens.get(one) ?? [])
    const [resource] = audience
    if (!issuer || resource === undefined) throw new Error(`the route ${route.id} has nobody to exchange tokens with`)
    const jwt = issuer.exchange(token, resource, scopes.join(' '))
    if (typeof jwt === 'string') return replace(jwt)
    return jwt.then(replace)
  }
