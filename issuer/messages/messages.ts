import { setTimeout as delay } from 'node:timers/promises'
import { readRecipient } from '../../deliveries/messages/addresses.ts'
import {
  createConnectorStore,
  type SealedConnector,
  type SenderType,
} from '../../deliveries/messages/connector-store.ts'
import { senderConfig } from '../../deliveries/messages/factories.ts'
import { type Channel, connectorTypeOf, type MessageContent, sealMessage } from '../../deliveries/messages/message.ts'
import {
  giveMessageUp,
  insertMessage,
  type MessageOutcome,
  messageOutcome,
} from '../../deliveries/messages/message-store.ts'
import type { MessageConfig } from '../../deliveries/messages/settings.ts'
import { type EventRequest, recordEvent } from '../../events/outbox.ts'
import { type Query, queryOf, type Transaction } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import { insertLog } from '../base/audit/log-store.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { type Asked, createMessageLimits, createTestLimit } from './limits.ts'
import { type MailLook, plainLook } from './mail-page.ts'
import { render } from './render.ts'
import { codeSeconds, type MessageType, type MessageVariables, templates } from './templates.ts'
import { catalogueOf } from './texts/catalogues.ts'
import { readVariables } from './variables.ts'

export type { MessageType, MessageVariables } from './templates.ts'

/** Whose account a message is about, where that is known, and the request that asked for it: for event and audit. */
export interface MessageAbout {
  userId?: string | undefined
  request?: EventRequest | undefined
}

export interface MessageAsked extends MessageAbout {
  channel: Channel
  /** A mail address; or a phone number in E.164, with or without its sign. */
  to: string
  /** Where it was asked from. */
  ip?: string | undefined
  /** What names a browser in which the owner has signed in before: it has a quota of its own. */
  knownDevice?: string | undefined
}

/** It was counted, and may be sent. */
export interface MessagePermit {
  readonly channel: Channel
  readonly to: string
}

export type Refusal =
  /** There were too many. */
  | 'limited'
  /** No connector sends on this channel: 501 `connector.not_found` at an API. */
  | 'no_connector'
  /** It is no address that could be sent to. */
  | 'invalid_recipient'

export interface NewMessage<Type extends MessageType> extends MessageAsked {
  type: Type
  variables: MessageVariables<Type>
  /** BCP 47. What there is no catalogue for is English. */
  locale: string
  /** What `mayBeSent` answered, when it was asked before. Otherwise `send` counts. */
  permit?: MessagePermit | undefined
  /** What `lookOf` answered for the application that it is about. Otherwise it looks like the issuer's. */
  look?: MailLook | undefined
  /** Of a code, in seconds: it is not sent after that. Default 600. */
  expiresIn?: number | undefined
}

export interface EnqueuedMessage {
  id: string
  /**
   * After the commit. With mock connectors it waits until the message is where tests look for it; otherwise there is
   * nothing to wait for.
   */
  afterCommit(): Promise<void>
}

export interface Messages {
  /** Whether anything sends on this channel. */
  isAvailable(channel: Channel): boolean
  /**
   * Whether a message may be sent, and counts it: also one that is then not sent because there is nobody to send it to.
   * Outside of a transaction, so that nobody waits for the counters of others.
   */
  mayBeSent(query: Query, asked: MessageAsked): Promise<MessagePermit | Refusal>
  /** How mails of an application look. Outside of a transaction: it may have to be read. */
  lookOf(clientId: string): Promise<MailLook>
  /**
   * Renders a message and puts it into the ledger, in the transaction of what it is about; a relay takes it from there
   * within milliseconds of the commit. Throws `VariableRefused` for a code or a link that is none of ours.
   */
  send<Type extends MessageType>(trx: Transaction, message: NewMessage<Type>): Promise<EnqueuedMessage | Refusal>
  /**
   * A message by a connector that is being tried out, whatever is configured: a code of zeros in our own words, without
   * the templates of the connector. Tests have a limit of their own.
   */
  sendTest(trx: Transaction, test: TestMessage): Promise<{ id: string } | 'invalid_recipient' | 'limited'>
  /** What came of a message within so many ms; one that still waits then is given up. */
  outcome(query: Query, id: string, waitMs: number): Promise<MessageOutcome>
}

export interface TestMessage {
  channel: Channel
  to: string
  locale: string
  connector: { connectorId: string; config: Record<string, unknown> }
}

export interface MessagesDependencies {
  /** For what is read after a commit. */
  query: Query
  /** The connector that sends on a channel, if there is one; from memory, for transactions that hold locks. */
  senderOf(type: SenderType): SealedConnector | undefined
  envelope: Envelope
  hmac: Hmac
  config: MessageConfig
  /** `BASE_URL`: where all links lead. */
  baseUrl: string
  /** The publisher of the outbox. */
  events: { wake(): void }
  /** Of mails. Default: without a name. */
  looks?: MailLooks
}

export interface MailLooks {
  ofIssuer(): MailLook
  ofApplication(clientId: string): Promise<MailLook>
}

const plainLooks: MailLooks = { ofIssuer: () => plainLook, ofApplication: async () => plainLook }

const pollMs = 5
/** A relay of the same test takes milliseconds. */
const mockWaitMs = 5_000
const testSeconds = 30

/** Messages to people. Nothing is sent from here: relays hold the connections to providers. */
export const createMessages = (dependencies: MessagesDependencies): Messages => {
  const { senderOf, envelope, hmac, config, baseUrl, events, looks = plainLooks } = dependencies
  const connectors = createConnectorStore(envelope)
  const count = createMessageLimits(hmac)
  const countTest = createTestLimit(hmac)

  /** Undefined: nothing sends on this channel. */
  const settingsOf = (channel: Channel) => {
    const connector = senderOf(connectorTypeOf[channel])
    if (connector) return senderConfig.parse(connectors.open(connector).config)
    return config.outbox === undefined ? undefined : senderConfig.parse({})
  }
  type Settings = NonNullable<ReturnType<typeof settingsOf>>

  /** The first refusal of a window is told; the others would fill the audit trail. */
  const tellLimited = async (query: Query, { channel, to, ip, userId, request }: MessageAsked) => {
    await insertLog(query, { key: 'Message.RateLimited', result: 'Error', userId, payload: { channel, ip } })
    if (userId === undefined || request === undefined) return
    const extras = { action: 'VerificationCodeSend', recipient: to, userId }
    await recordEvent(query, {
      type: 'Message.RateLimited',
      entity: { kind: 'user', id: userId },
      data: null,
      extras,
      request,
    })
    events.wake()
  }

  const permitOf = async (query: Query, asked: MessageAsked, settings: Settings): Promise<MessagePermit | Refusal> => {
    const to = readRecipient(asked.channel, asked.to)
    if (to === undefined) return 'invalid_recipient'
    const counted = await count(query, { ...asked, to } satisfies Asked, settings.maxPerHour)
    if (counted === 'limited_first') await tellLimited(query, asked)
    return counted === 'ok' ? { channel: asked.channel, to } : 'limited'
  }

  const enqueue = async (
    trx: Transaction,
    message: { channel: Channel; type: string; ttl: number; content: MessageContent },
  ) => {
    const id = newId()
    const sealed = sealMessage(envelope, id, message.content)
    await insertMessage(trx, { id, channel: message.channel, type: message.type, sealed, ttl: message.ttl })
    return id
  }

  const outcome: Messages['outcome'] = async (query, id, waitMs) => {
    const deadline = performance.now() + waitMs
    for (;;) {
      const found = await messageOutcome(query, id)
      if (found && found.state !== 'waiting') return found
      if (performance.now() > deadline) {
        await giveMessageUp(query, id)
        return { state: 'failed', error: found?.error ?? 'no_relay' }
      }
      await delay(pollMs)
    }
  }

  const untilWritten = async (query: Query, id: string) => {
    const deadline = performance.now() + mockWaitMs
    while (performance.now() < deadline) {
      const found = await messageOutcome(query, id)
      if (found && found.state !== 'waiting') return
      await delay(pollMs)
    }
  }

  return {
    isAvailable: (channel) => config.outbox !== undefined || senderOf(connectorTypeOf[channel]) !== undefined,

    async mayBeSent(query, asked) {
      const settings = settingsOf(asked.channel)
      return settings === undefined ? 'no_connector' : permitOf(query, asked, settings)
    },

    lookOf: (clientId) => looks.ofApplication(clientId),

    async send(trx, message) {
      const query = queryOf(trx)
      const { type, channel, ip } = message
      const template = templates[type]
      const settings = settingsOf(channel)
      if (settings === undefined) return 'no_connector'
      const to = readRecipient(channel, message.to)
      if (to === undefined) return 'invalid_recipient'
      const isPermitted = message.permit?.channel === channel && message.permit.to === to
      if (template.limited && !isPermitted) {
        const permit = await permitOf(query, message, settings)
        if (typeof permit === 'string') return permit
      }
      const isCode = template.ttl === codeSeconds
      const ttl = isCode ? (message.expiresIn ?? codeSeconds) : template.ttl
      // The link of notices, to wherever `unknownSessionRedirectUrl` leads; an invitation brings its own.
      const supplied = { minutes: String(Math.max(1, Math.floor(ttl / 60))), link: `${baseUrl}/sign-in` }
      const variables = readVariables({ ...supplied, ...message.variables }, baseUrl)
      const catalogue = catalogueOf(message.locale)
      const usage = template.usage === 'own' ? type : template.usage
      const { look = looks.ofIssuer() } = message
      const rendered = render({ type, usage, channel, catalogue, variables, operators: settings.templates, look })
      const { locale } = catalogue
      const given = readVariables(message.variables, baseUrl)
      const content = { to, usage, variables: given, locale, ...rendered, ...(ip !== undefined && { ip }) }
      const id = await enqueue(trx, { channel, type, ttl, content })
      return {
        id,
        async afterCommit() {
          if (config.mockFolder !== undefined) await untilWritten(dependencies.query, id)
        },
      }
    },

    async sendTest(trx, { channel, to: written, locale, connector }) {
      const to = readRecipient(channel, written)
      if (to === undefined) return 'invalid_recipient'
      if ((await countTest(queryOf(trx), { channel, to })) !== 'ok') return 'limited'
      const variables = { code: '000000', minutes: '10' }
      const catalogue = catalogueOf(locale)
      const look = looks.ofIssuer()
      // Our own words: what a caller writes goes to no stranger over the provider of the operator.
      const rendered = render({
        ...{ type: 'Generic', usage: 'Generic', channel, catalogue, variables, look },
        operators: [],
      })
      const content = { to, usage: 'Generic', variables: { code: '000000' }, locale, ...rendered, connector }
      return { id: await enqueue(trx, { channel, type: 'Test', ttl: testSeconds, content }) }
    },

    outcome,
  }
}
