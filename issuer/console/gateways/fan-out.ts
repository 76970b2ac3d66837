import { z } from 'zod'
import { createSemaphore } from '../../../platform/semaphore.ts'
import { overloaded, problem } from '../../base/errors/problems.ts'
import { type GatewayClient, type Question, refusalOf, troubleOf } from './client.ts'
import { type Gateway, type GatewayState, GatewayTrouble } from './gateways.ts'
import type { Asker, TokenFor } from './tokens.ts'

/** One question to several gateways, and their answers as one. */
export interface FanOut {
  states(gateways: readonly Gateway[], asker: Asker): Promise<GatewayReport[]>
  list(gateways: readonly Gateway[], asker: Asker, query: ListQuery): Promise<ListedDecisions>
  /** `path` below the inspection API. Throws 404 when no gateway that answers has it. */
  find(gateways: readonly Gateway[], asker: Asker, path: readonly string[]): Promise<object>
  sessions(gateways: readonly Gateway[], asker: Asker, sid: string): Promise<SessionReport[]>
}

export interface GatewayReport {
  name: string
  state: GatewayState
  because?: string
  revision?: string
}

export interface Missing {
  gateway: string
  because: string
}

export type SessionReport = { gateway: string; ended: boolean } | Missing

export interface ListQuery {
  request?: string | undefined
  sid?: string | undefined
  subject?: string | undefined
  route?: string | undefined
  verdict?: string | undefined
  limit: number
}

export type ListedDecision = z.output<typeof record> & { gateway: string }

export interface ListedDecisions {
  /** Newest first. */
  decisions: ListedDecision[]
  more: boolean
  missing: Missing[]
}

/** What pages wait for. In ms: a gateway that takes longer is told as missing. */
const timeoutMs = 5_000
/** Of an account of a decision, for which rules are compiled. In ms. */
const whyTimeoutMs = 20_000
/** Lists that are made at a time, since each holds what gateways answered. Others wait, and too many are refused. */
const listing = { permits: 8, maxWaiting: 64, full: overloaded }
/** Of a list, in characters. */
const mostListed = 8_388_608

const record = z.looseObject({ decision_id: z.string(), timestamp: z.string() })
const listed = z.object({ decisions: z.array(record), more: z.boolean() })
const revised = z.object({ revision: z.string().max(256) })
const session = z.object({ ended: z.boolean(), followed: z.boolean() })
const anObject = z.record(z.string(), z.unknown())

type Outcome<Answer> = { gateway: string; answer: Answer } | { gateway: string; trouble: GatewayTrouble }

export const createFanOut = ({ client, tokenFor }: { client: GatewayClient; tokenFor: TokenFor }): FanOut => {
  const inTurn = createSemaphore(listing)

  const askOne = async <Answer>(
    gateway: Gateway,
    question: Question,
    schema: z.ZodType<Answer>,
    patienceMs = timeoutMs,
  ): Promise<Answer> => {
    const answer = await client.ask(gateway, question, patienceMs)
    if (answer.status !== 200) throw refusalOf(answer)
    try {
      return schema.parse(JSON.parse(answer.body.toString()))
    } catch (cause) {
      throw new GatewayTrouble('refuses', 'Its answer is not that of a gateway.', { cause })
    }
  }

  const askAll = <Answer>(
    gateways: readonly Gateway[],
    asker: Asker,
    question: Omit<Question, 'token'>,
    schema: z.ZodType<Answer>,
  ): Promise<Outcome<Answer>[]> =>
    Promise.all(
      gateways.map(async (gateway) => {
        const token = tokenFor(asker, gateway.audience)
        try {
          return { gateway: gateway.name, answer: await askOne(gateway, { ...question, token }, schema) }
        } catch (error) {
          return { gateway: gateway.name, trouble: troubleOf(error) }
        }
      }),
    )

  return {
    async states(gateways, asker) {
      const outcomes = await askAll(gateways, asker, { path: ['upstreams'] }, revised)
      return outcomes.map((one) =>
        'answer' in one
          ? { name: one.gateway, state: 'answers', revision: one.answer.revision }
          : { name: one.gateway, state: one.trouble.state, because: one.trouble.message },
      )
    },

    list: (gateways, asker, { limit, ...filter }) =>
      inTurn(async () => {
        const query = { ...filter, limit: String(limit) }
        const outcomes = await askAll(gateways, asker, { path: ['decisions'], query }, listed)
        const found = outcomes
          .flatMap((one) =>
            'answer' in one ? one.answer.decisions.map((each) => ({ ...each, gateway: one.gateway })) : [],
          )
          .toSorted((one, other) => Date.parse(other.timestamp) - Date.parse(one.timestamp))
        let size = 0
        const decisions = found.slice(0, limit).filter((each) => {
          size += JSON.stringify(each).length
          return size <= mostListed
        })
        const more = decisions.length < found.length || outcomes.some((one) => 'answer' in one && one.answer.more)
        return { decisions, more, missing: missingOf(outcomes) }
      }),

    async find(gateways, asker, path) {
      const done = new AbortController()
      const missing: Missing[] = []
      const patienceMs = path.at(-1) === 'why' ? whyTimeoutMs : timeoutMs
      const asked = gateways.map(async (gateway) => {
        const question = { path, token: tokenFor(asker, gateway.audience), signal: done.signal }
        try {
          return { ...(await askOne(gateway, question, anObject, patienceMs)), gateway: gateway.name }
        } catch (error) {
          const trouble = troubleOf(error)
          if (trouble.status !== 404) missing.push({ gateway: gateway.name, because: trouble.message })
          throw trouble
        }
      })
      try {
        // The first that has it: nobody waits for one that is away.
        return await Promise.any(asked)
      } catch (cause) {
        const detail =
          missing.length === 0
            ? 'No gateway keeps a decision with this id.'
            : 'No gateway that answers keeps a decision with this id.'
        throw problem('entity.not_found', { detail, data: { missing }, cause })
      } finally {
        done.abort()
      }
    },

    async sessions(gateways, asker, sid) {
      const outcomes = await askAll(gateways, asker, { path: ['sessions', sid] }, session)
      return outcomes.map((one) => {
        if ('trouble' in one) return { gateway: one.gateway, because: one.trouble.message }
        const { ended, followed } = one.answer
        if (!followed) return { gateway: one.gateway, because: 'It does not follow what the issuer revokes.' }
        return { gateway: one.gateway, ended }
      })
    },
  }
}

const missingOf = (outcomes: readonly Outcome<unknown>[]): Missing[] =>
  outcomes.flatMap((one) => ('trouble' in one ? [{ gateway: one.gateway, because: one.trouble.message }] : []))
