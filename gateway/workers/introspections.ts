import { hash } from 'node:crypto'
import type { Metrics } from '../../platform/metrics.ts'
import { Secret } from '../../platform/secret.ts'
import { keepInactiveMs, keepMs } from '../caller/introspection.ts'
import {
  createIntrospectionQuestions,
  type IntrospectionAnswer,
  type IntrospectionQuestions,
} from '../caller/introspection-questions.ts'
import { createTokenAnswers, type TokenAnswer, type TokenAnswers } from '../caller/token-answers.ts'
import type { GatewayConfig } from '../config/load.ts'
import { introspectionsOf } from '../config/settings/issuer.ts'
import type { IntrospectionRequest } from './messages.ts'

/** Questions of all workers about opaque tokens: each is asked once, and the answer given to whoever asks the same. */
export interface Introspections {
  /** Rejects with a message for operators. */
  ask(request: IntrospectionRequest): Promise<IntrospectionAnswer>
  /** Forgets what was asked for clients that neither this configuration has nor the one before it. */
  keep(config: GatewayConfig): Promise<void>
  close(): Promise<void>
}

interface Asked {
  questions: IntrospectionQuestions
  answers: TokenAnswers<IntrospectionAnswer>
}

export const createIntrospections = ({ metrics }: { metrics: Metrics }): Introspections => {
  const now = () => new Date()
  const all = new Map<string, Asked>()
  let kept: ReadonlySet<string> = new Set()

  const open = ({ issuer, id, secret }: IntrospectionRequest): Asked => {
    const key = keyOf(issuer, id, secret)
    const known = all.get(key)
    if (known) return known
    const client = { id, secret: new Secret(secret) }
    const opened: Asked = {
      questions: createIntrospectionQuestions({ issuer, client, metrics, now }),
      answers: createTokenAnswers({ now }),
    }
    all.set(key, opened)
    return opened
  }

  return {
    async ask(request) {
      const { url, token } = request
      const { questions, answers } = open(request)
      const key = hash('sha256', JSON.stringify([url, token]), 'base64')
      const told = await answers.get(key, async () => toldOf(await questions.ask(url, token)))
      return told.answer ?? { members: undefined, askedAt: told.until - keepInactiveMs, size: 0 }
    },
    async keep({ issuers }) {
      const keys = new Set(
        introspectionsOf(issuers).map(({ issuer, client }) => keyOf(issuer, client.id, client.secret.reveal())),
      )
      const leaving = [...all].filter(([key]) => !keys.has(key) && !kept.has(key))
      kept = keys
      for (const [key] of leaving) all.delete(key)
      await Promise.all(leaving.map(([, { questions }]) => questions.close()))
    },
    async close() {
      await Promise.all([...all.values()].map(({ questions }) => questions.close()))
    },
  }
}

const keyOf = (...parts: string[]): string => JSON.stringify(parts)

const toldOf = (answer: IntrospectionAnswer): TokenAnswer<IntrospectionAnswer> => {
  const { members, askedAt, size } = answer
  if (!members) return { answer: undefined, until: askedAt + keepInactiveMs, size: 0 }
  const { exp } = members
  const expiresAt = typeof exp === 'number' ? exp * 1000 : Number.POSITIVE_INFINITY
  return { answer, until: Math.min(askedAt + keepMs, expiresAt), size }
}
