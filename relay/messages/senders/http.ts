import { request } from 'undici'
import { z } from 'zod'
import type { ConfigOf, SenderId } from '../../../deliveries/messages/factories.ts'
import type { OutboundAgent, TargetPolicy } from '../../../platform/http/outbound.ts'
import { failure, networkErrorOf, type Outgoing, type Sender, type SendResult } from './sender.ts'

/** Providers that take a message as one POST. */
type HttpId = Exclude<SenderId, 'simple-mail-transfer-protocol' | `mock-${string}`>

interface HttpRequest {
  url: string
  headers: Record<string, string>
  body: string
}

/** The headers that prove where a request comes from, like those of webhooks. */
export type Sign = (request: { id: string; body: string; signingKey: string }) => Record<string, string>

interface Provider<Config> {
  request(config: Config, message: Outgoing, sign: Sign): HttpRequest
  /** What a 200 says that is a failure all the same. */
  read?(body: string): SendResult
}

const json = (value: unknown) => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) })
const form = (values: Record<string, string>) => ({
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(values).toString(),
})
const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** To an operator's own URL, signed like a webhook. */
const ownUrl: Provider<ConfigOf<'http-email'>> = {
  request({ endpoint, authorization, signingKey }, message, sign) {
    const { id, to, usage, type, variables, locale, subject, text, html, ip } = message
    const { headers, body } = json({
      ...{ id, to, type: usage, template: type, payload: { ...variables, locale }, subject, text },
      ...(html !== undefined && { html }),
      ...(ip !== undefined && { ip }),
    })
    const signed = signingKey ? sign({ id, body, signingKey }) : {}
    return { url: endpoint, headers: { ...headers, ...signed, ...(authorization && { authorization }) }, body }
  },
}

const vonageAnswer = z.object({ messages: z.array(z.object({ status: z.string() })).min(1) })
/** Too many at once, an error of its own. */
const vonageLater = new Set(['1', '5'])
/** Wrong credentials, no money, no permission. */
const vonageProvider = new Set(['4', '8', '9', '10', '14', '29'])

const providers: { [Id in HttpId]: Provider<ConfigOf<Id>> } = {
  'http-email': ownUrl,
  'http-sms': ownUrl,
  'twilio-short-message-service': {
    request({ accountSID, authToken, fromMessagingServiceSID, endpoint = 'https://api.twilio.com' }, { to, text }) {
      const { headers, body } = form({ To: to, MessagingServiceSid: fromMessagingServiceSID, Body: text })
      const url = `${endpoint.replace(/\/$/, '')}/2010-04-01/Accounts/${accountSID}/Messages.json`
      return { url, headers: { ...headers, authorization: basic(accountSID, authToken) }, body }
    },
  },
  'vonage-sms': {
    request({ apiKey, apiSecret, brandName, endpoint = 'https://rest.nexmo.com' }, { to, text }) {
      const url = `${endpoint.replace(/\/$/, '')}/sms/json`
      const values = { api_key: apiKey, api_secret: apiSecret, from: brandName, to: to.slice(1), text, type: 'unicode' }
      return { url, ...form(values) }
    },
    // It answers 200 whatever comes of it.
    read(body) {
      const parsed = vonageAnswer.safeParse(parseJson(body))
      if (!parsed.success) return failure('later', 'answer')
      const failed = parsed.data.messages.find(({ status }) => status !== '0')
      if (failed === undefined) return { sent: true }
      const status = /^\d{1,3}$/.test(failed.status) ? failed.status : 'unknown'
      if (vonageLater.has(status)) return failure('later', `vonage_${status}`)
      return failure(vonageProvider.has(status) ? 'provider' : 'message', `vonage_${status}`)
    },
  },
  'messagebird-sms': {
    request({ accessKey, originator, endpoint = 'https://rest.messagebird.com' }, { to, text }) {
      const url = `${endpoint.replace(/\/$/, '')}/messages`
      const { headers, body } = json({ originator, recipients: [to.slice(1)], body: text, datacoding: 'auto' })
      return { url, headers: { ...headers, authorization: `AccessKey ${accessKey}` }, body }
    },
  },
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** In seconds, or a date; an hour at most. */
const retryAfterMs = (value: string | string[] | undefined): number | undefined => {
  const text = [value].flat()[0]
  if (text === undefined) return undefined
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), 3_600_000) : undefined
}

export const isHttpProvider = (id: string): id is HttpId => Object.hasOwn(providers, id)

export const createHttpSender = <Id extends HttpId>(
  id: Id,
  config: ConfigOf<Id>,
  { agent, policy, sign, owner }: { agent: OutboundAgent; policy: TargetPolicy; sign: Sign; owner: string },
): Sender => {
  const provider: Provider<ConfigOf<Id>> = providers[id]
  return {
    async send(message, timeoutMs) {
      const { url, headers, body } = provider.request(config, message, sign)
      if (policy.refusalOfUrl(new URL(url)) !== undefined) return failure('provider', 'not_allowed')
      try {
        const answer = await request(url, {
          method: 'POST',
          headers,
          body,
          dispatcher: agent.dispatcherOf(owner),
          signal: AbortSignal.timeout(timeoutMs),
        })
        const text = await answer.body.text()
        const { statusCode: status } = answer
        if (status >= 200 && status < 300) return provider.read?.(text) ?? { sent: true }
        const category = `http_${status}`
        if (status === 401 || status === 403) return failure('provider', 'authentication')
        if (status === 408 || status === 425 || status === 429 || status >= 500)
          return failure('provider', category, retryAfterMs(answer.headers['retry-after']))
        return failure(status >= 400 ? 'message' : 'provider', category)
      } catch (error) {
        return failure('provider', networkErrorOf(error))
      }
    },
    close() {},
  }
}
