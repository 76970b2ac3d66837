import type { Channel } from '../../deliveries/messages/message.ts'
import type { Query } from '../../platform/database/database.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { addressKey } from '../base/rate-limits/address-key.ts'
import { countMessage } from './limit-store.ts'

export interface Asked {
  channel: Channel
  /** The recipient, read by `readRecipient`. */
  to: string
  /** Where it was asked from. */
  ip?: string | undefined
  /**
   * A browser in which the owner of the recipient has signed in before: it has a quota of its own, which strangers
   * cannot use up.
   */
  knownDevice?: string | undefined
}

export type Counted = 'ok' | 'limited' | 'limited_first'

interface Counter {
  name: string
  most: number
  seconds: number
  /** What is counted; undefined: it does not apply. */
  of(asked: Asked): readonly string[] | undefined
}

const canonical = ({ channel, to }: Asked) => [channel, to.normalize('NFKC').toLowerCase()]
const ofRecipient = (asked: Asked) => [...canonical(asked), asked.knownDevice ?? '']

/**
 * In this order: what one address is refused does not count against the recipient, so that nobody uses up another's
 * quota beyond its own.
 */
const counters: readonly Counter[] = [
  {
    name: 'address',
    most: 20,
    seconds: 3_600,
    of: ({ ip, knownDevice }) => (ip === undefined || knownDevice !== undefined ? undefined : [addressKey(ip)]),
  },
  { name: 'recipient', most: 5, seconds: 600, of: ofRecipient },
  { name: 'recipient by day', most: 20, seconds: 86_400, of: ofRecipient },
]

/** Messages of one connector in an hour: it ends what no other limit notices, such as calls to dear numbers. */
const circuits: Record<Channel, number> = { email: 20_000, sms: 2_000 }
/** To one country, by the beginning of its numbers: half of all, so that the others are not kept out. */
const perCountryShare = 2

/**
 * Counts in rows that all instances share, under HMACs: they do not tell who was written to. Each is one statement, so
 * that of any number at once no more than the limit come through.
 */
export const createMessageLimits =
  (hmac: Hmac) =>
  async (query: Query, asked: Asked, maxPerHour: number = circuits[asked.channel]): Promise<Counted> => {
    const { channel, to } = asked
    const country: Counter[] =
      channel === 'sms'
        ? [
            {
              name: 'country',
              most: Math.max(1, Math.ceil(maxPerHour / perCountryShare)),
              seconds: 3_600,
              of: () => [to.slice(0, 4)],
            },
          ]
        : []
    const all = [
      ...counters,
      ...country,
      { name: 'connector', most: maxPerHour, seconds: 3_600, of: () => [channel] } satisfies Counter,
    ]
    for (const { name, most, seconds, of } of all) {
      const parts = of(asked)
      if (parts === undefined) continue
      const count = await countMessage(query, hmac('message-limits', name, ...parts), most, seconds)
      if (count > most) return count === most + 1 ? 'limited_first' : 'limited'
    }
    return 'ok'
  }

export type MessageLimits = ReturnType<typeof createMessageLimits>

/** Test-sends, all together and to one recipient: holders of a leaked token cannot flood anybody. */
const testCounters: readonly Counter[] = [
  { name: 'tests', most: 60, seconds: 3_600, of: () => [] },
  { name: 'tests of recipient', most: 10, seconds: 600, of: canonical },
]

export const createTestLimit =
  (hmac: Hmac) =>
  async (query: Query, asked: Asked): Promise<Counted> => {
    for (const { name, most, seconds, of } of testCounters) {
      const count = await countMessage(query, hmac('message-limits', name, ...(of(asked) ?? [])), most, seconds)
      if (count > most) return 'limited'
    }
    return 'ok'
  }
