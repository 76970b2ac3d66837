import type { Clock } from '../../platform/clock.ts'
import type { RateLimitSettings } from '../config/settings/route.ts'
import { problem } from '../refusals/problems.ts'
import type { RoutedRequest, Stage } from '../request/request-context.ts'
import type { BucketAnswer, TokenBuckets } from './token-buckets.ts'

/** One limit of one route. */
export interface RateLimit extends RateLimitSettings {
  /** Of no other limit; the same in every process. */
  readonly key: string
  readonly buckets: TokenBuckets
}

/** A token that a request needs. */
export interface WantedToken {
  limit: RateLimit
  /** Whose bucket it comes from. */
  party: string
}

/**
 * Takes all tokens of a request, or none when there is one that it would have to wait for. One answer for each. `now`
 * in ms. Rejects when it cannot be known how many there are.
 */
export type TakeTokens = (
  wanted: readonly WantedToken[],
  now: number,
) => readonly BucketAnswer[] | Promise<readonly BucketAnswer[]>

/** From the buckets of this process. */
export const takeTokens = (wanted: readonly WantedToken[], now: number): readonly BucketAnswer[] => {
  const answers = wanted.map(({ limit, party }) => limit.buckets.ask(party, now))
  if (answers.every(({ wait }) => wait === 0)) for (const { limit, party } of wanted) limit.buckets.take(party, now)
  return answers
}

export interface LimitRateParts {
  /** By the id of the route. */
  rateLimits: ReadonlyMap<string, readonly RateLimit[]>
  /** Called for each request that a limit refuses. */
  onLimited: (routeId: string, limit: string) => void
  takeTokens: TakeTokens
  now: Clock
}

/**
 * Whom an address stands for: an IPv6 customer has a /64 at least, and would otherwise have as many buckets as it
 * likes. Takes canonical addresses (`isIP`), without a mapped IPv4 one.
 */
export const networkOf = (address: string): string => {
  if (!address.includes(':')) return address
  const [plain = ''] = address.split('%', 1)
  const [head = '', tail] = plain.split('::')
  const start = head === '' ? [] : head.split(':')
  const end = tail ? tail.split(':') : []
  const gap = tail === undefined ? 0 : 8 - start.length - end.length - (end.at(-1)?.includes('.') ? 1 : 0)
  const groups = [...start, ...Array.from({ length: Math.max(gap, 0) }, () => '0'), ...end]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}

/** Ids are unique within an issuer only. */
const parties: Record<RateLimitSettings['by'], (context: RoutedRequest) => string | undefined> = {
  subject: ({ principal }) => principal && `${principal.claims.iss} ${principal.input.subject?.id ?? ''}`,
  // Tokens that name no client share one bucket: to be unnamed is no way around a limit.
  client: ({ principal }) => principal && `${principal.claims.iss} ${principal.input.client?.id ?? ''}`,
  actor: ({ principal }) => principal?.input.actor && `${principal.claims.iss} ${principal.input.actor.id}`,
  address: ({ request }) => networkOf(request.clientIp),
}

/**
 * draft-ietf-httpapi-ratelimit-headers §3 and §4: quota and window of each limit, and what is left until when. In whole
 * seconds.
 */
const policyItem = ({ name, requests, per }: RateLimitSettings) =>
  `"${name}";q=${requests};w=${Math.max(1, Math.round(per / 1000))}`
const stateItem = (name: string, left: number, ms: number) => `"${name}";r=${left};t=${Math.ceil(ms / 1000)}`

const appended = (list: string | undefined, item: string) => (list === undefined ? item : `${list}, ${item}`)

/**
 * Two stages of this kind: limits by address come before any token is looked at, so that guessing tokens counts; the
 * others when it is known who asks. A request that one limit refuses takes nothing from the others.
 */
export const createLimitRate = (
  { rateLimits, onLimited, takeTokens, now }: LimitRateParts,
  when: 'early' | 'late',
): Stage<RoutedRequest> => {
  const here = new Map(
    [...rateLimits].flatMap(([id, limits]) => {
      const concerned = limits.filter(({ by }) => (by === 'address') === (when === 'early'))
      return concerned.length > 0 ? [[id, concerned] as const] : []
    }),
  )
  if (here.size === 0) return () => {}

  /** Throws 429, when one of the answers says that there is no token. */
  const answer = (context: RoutedRequest, wanted: readonly WantedToken[], answers: readonly BucketAnswer[]) => {
    const routeId = context.route.id
    let policies = context.answerFields?.['ratelimit-policy']
    let states = context.answerFields?.['ratelimit']
    let longestWait = 0
    for (const [index, { limit }] of wanted.entries()) {
      const { wait, left, fullIn } = answers[index]!
      if (wait > 0) onLimited(routeId, limit.name)
      longestWait = Math.max(longestWait, wait)
      policies = appended(policies, policyItem(limit))
      states = appended(states, stateItem(limit.name, left, wait > 0 ? wait : fullIn))
    }
    if (policies === undefined || states === undefined) return
    context.answerFields = { ...context.answerFields, 'ratelimit-policy': policies, ratelimit: states }
    if (longestWait > 0) {
      throw problem('rate_limited', { headers: { 'retry-after': String(Math.ceil(longestWait / 1000)) } })
    }
  }

  return (context) => {
    const limits = here.get(context.route.id)
    if (!limits) return
    const wanted: WantedToken[] = []
    for (const limit of limits) {
      const party = parties[limit.by](context)
      if (party !== undefined) wanted.push({ limit, party })
    }
    if (wanted.length === 0) return
    const answers = takeTokens(wanted, now().getTime())
    if (!(answers instanceof Promise)) return answer(context, wanted, answers)
    return answers.then(
      (all) => answer(context, wanted, all),
      (cause: unknown) => {
        throw problem('limits_unavailable', { cause, headers: { 'retry-after': '1' } })
      },
    )
  }
}
