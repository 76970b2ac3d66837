import { createMetrics, type Metrics } from '../platform/metrics.ts'

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600]

/**
 * What operators see of events on their way from the outbox to the relays. Their ids say when they were recorded (RFC
 * 9562 §5.7).
 */
export interface EventMetrics {
  /** The broker has confirmed these. */
  published(eventIds: readonly string[]): void
  /** The broker refused events, or did not answer. */
  refused(count: number): void
  /** Published events never arrived and are published again. */
  republished(count: number): void
  /** These were ingested. */
  ingested(eventIds: readonly string[]): void
  /** Messages of the stream that are no events of ours. */
  quarantined(count: number): void
  /** Messages whose bytes differ from the ledger's. */
  mismatched(count: number): void
}

export const createEventMetrics = (metrics: Metrics = createMetrics()): EventMetrics => {
  const published = metrics.counter('surrogate_events_published_total', 'Events that the broker has confirmed.')
  const refused = metrics.counter('surrogate_events_refused_total', 'Events that the broker did not confirm.')
  const republished = metrics.counter(
    'surrogate_events_republished_total',
    'Published events that never arrived at a relay and are published again.',
  )
  const ingested = metrics.counter('surrogate_events_ingested_total', 'Events that relays have taken in.')
  const strange = metrics.counter(
    'surrogate_events_quarantined_total',
    'Messages of the broker that are no events (unknown), or differ from the ledger (different).',
    ['reason'],
  )
  const publishLag = metrics.histogram(
    'surrogate_event_publish_lag_seconds',
    'From recording an event to its confirmation by the broker.',
    seconds,
  )
  const ingestLag = metrics.histogram(
    'surrogate_event_ingest_lag_seconds',
    'From recording an event to taking it in at a relay.',
    seconds,
  )
  return {
    published(eventIds) {
      published.inc(eventIds.length)
      for (const id of eventIds) publishLag.observe(ageOf(id))
    },
    refused: (count) => refused.inc(count),
    republished: (count) => republished.inc(count),
    ingested(eventIds) {
      ingested.inc(eventIds.length)
      for (const id of eventIds) ingestLag.observe(ageOf(id))
    },
    quarantined: (count) => strange.inc({ reason: 'unknown' }, count),
    mismatched: (count) => strange.inc({ reason: 'different' }, count),
  }
}

/** In seconds; the clocks of two machines may differ. */
const ageOf = (eventId: string): number =>
  Math.max(Date.now() - Number.parseInt(eventId.slice(0, 8) + eventId.slice(9, 13), 16), 0) / 1_000
