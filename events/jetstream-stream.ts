import { setTimeout } from 'node:timers/promises'
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamManager,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from '@nats-io/jetstream'
import { type NatsConnection, nanos } from '@nats-io/transport-node'
import { StartupError } from '../platform/startup-error.ts'

/**
 * The stream and the consumer that events travel through, as they must be. They are made when they are missing, and
 * never altered: one that differs may be somebody else's.
 */
export const streamName = 'SURROGATE_EVENTS'
export const consumerName = 'surrogate-relay'
/** Outside of the stream: nobody needs it later. */
export const revocationsSubject = 'surrogate.revocations'
export const subjectOf = (type: string) => `surrogate.events.${type}`

const seconds = (count: number) => nanos(count * 1_000)

/**
 * Limits: deduplication outlives an acknowledgement. `new`: a full stream pushes back into the outbox instead of
 * dropping what is oldest.
 */
const stream = {
  name: streamName,
  subjects: ['surrogate.events.>'],
  retention: RetentionPolicy.Limits,
  storage: StorageType.File,
  max_age: seconds(7 * 86_400),
  discard: DiscardPolicy.New,
  max_msgs_per_subject: -1,
  no_ack: false,
  sealed: false,
} satisfies Partial<StreamConfig>

/** `max_deliver: -1`: a limit would park an event silently. */
const consumer = {
  durable_name: consumerName,
  ack_policy: AckPolicy.Explicit,
  deliver_policy: DeliverPolicy.All,
  replay_policy: ReplayPolicy.Instant,
  max_deliver: -1,
} satisfies Partial<ConsumerConfig>

/**
 * What an operator may have set otherwise: how long until an event that a relay did not finish goes to another, and how
 * many may be on their way.
 */
const consumerDefaults = { ack_wait: seconds(10), max_ack_pending: 20_000 }

/**
 * Members of ours that another server version or an operator may fill in, and that would change what reaches the relay.
 */
const absent = {
  stream: ['mirror', 'sources', 'subject_transform'],
  consumer: ['deliver_subject', 'filter_subject', 'filter_subjects', 'headers_only', 'rate_limit_bps'],
} as const

/**
 * Makes the stream if it is missing: after `recheckMs`, if it is still missing then. Throws `StartupError` when it
 * differs or cannot be made.
 */
export const ensureStream = async ({ streams }: JetStreamManager, recheckMs: number): Promise<void> => {
  const found = () => streams.info(streamName).catch(unlessMissing)
  const made = (await foundAfter(found, recheckMs)) ?? (await streams.add(stream).catch(foundOr(found)))
  refuseDifferent(`The stream ${streamName}`, stream, absent.stream, made.config)
}

/** The same for the consumer, which only relays need. */
export const ensureConsumer = async ({ consumers }: JetStreamManager, recheckMs: number): Promise<void> => {
  const found = () => consumers.info(streamName, consumerName).catch(unlessMissing)
  const add = () => consumers.add(streamName, { ...consumer, ...consumerDefaults })
  const made = (await foundAfter(found, recheckMs)) ?? (await add().catch(foundOr(found)))
  refuseDifferent(`The consumer ${consumerName} of the stream ${streamName}`, consumer, absent.consumer, made.config)
}

const foundAfter = async <Info>(found: () => Promise<Info | undefined>, recheckMs: number) => {
  const info = await found()
  if (info !== undefined || recheckMs === 0) return info
  await setTimeout(recheckMs)
  return found()
}

/** Another process may have made it a moment ago. */
const foundOr =
  <Info>(found: () => Promise<Info | undefined>) =>
  async (error: unknown) =>
    (await found()) ?? refused(error)

const notFound = new Set([10_014, 10_059])
const unlessMissing = (error: unknown): undefined => {
  if (error instanceof JetStreamApiError && notFound.has(error.code)) return undefined
  throw error
}

/** What waiting does not mend is told to the operator. */
const refused = (error: unknown): never => {
  if (!(error instanceof JetStreamApiError) || error.status >= 500) throw error
  throw new StartupError(`NATS refuses to make what events travel through: ${error.message}`, {
    hint: 'The account needs JetStream with file storage, and the user the permission to use its API.',
    cause: error,
  })
}

const refuseDifferent = (
  what: string,
  wanted: Record<string, unknown>,
  absent: readonly string[],
  found: object,
): void => {
  const actual = found as Record<string, unknown>
  const differences = [
    ...Object.entries(wanted).map(([name, value]) => ({ name, value, is: actual[name] ?? defaultOf(value) })),
    ...absent.map((name) => ({ name, value: undefined, is: actual[name] || undefined })),
  ].filter(({ value, is }) => JSON.stringify(value) !== JSON.stringify(is))
  if (differences.length === 0) return
  const lines = differences.map(({ name, value, is }) => `  ${name}: ${shown(is)}, needed: ${shown(value)}`)
  throw new StartupError(`${what} has other settings than Surrogate needs:\n${lines.join('\n')}`, {
    hint: 'It is never altered by itself: change it with the nats command line, or delete it and it is made again.',
  })
}

/** Servers leave out what is false. */
const defaultOf = (value: unknown) => (value === false ? false : undefined)
const shown = (value: unknown) => (value === undefined ? 'not set' : JSON.stringify(value))

const oldestServer = { major: 2, minor: 9 }

/** Throws `StartupError` for a server that is too old. */
export const requireVersion = (connection: NatsConnection): void => {
  const { version = '' } = connection.info ?? {}
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > oldestServer.major || (major === oldestServer.major && minor >= oldestServer.minor)) return
  throw new StartupError(
    `NATS is version ${version}; Surrogate needs ${oldestServer.major}.${oldestServer.minor} or newer.`,
    { hint: 'Upgrade nats-server, or unset NATS_URL: events then travel through PostgreSQL.' },
  )
}
