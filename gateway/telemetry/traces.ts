import { setTimeout as delay } from 'node:timers/promises'
import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace as traceApi,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type ReadableSpan,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { randomHex } from '../../platform/ids.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { TelemetrySettings } from '../config/settings/telemetry.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { RequestTrace, Tracing } from '../request/request-trace.ts'
import { exporterOptions, reporting, resourceOf } from './collector.ts'
import { requestSpans, type SpanDescription } from './request-spans.ts'

/** Spans of requests, sent to a collector. */
export interface Traces extends Tracing {
  /** Of a finished request; nothing of one that is not sampled. */
  record(context: RequestContext): void
  /** Sends what is left, as far as that is possible within two seconds. */
  close(): Promise<void>
}

/** Spans that wait to be sent; those of later requests are dropped and counted. */
const maxQueueSize = 2_048
const scheduledDelayMillis = 1_000
/** Longer than an export may take with its repetitions. In ms. */
const exportTimeoutMillis = 15_000
/** In characters: callers choose paths and user agents. */
const attributeValueLengthLimit = 1_024
const lastChanceMs = 2_000

const kinds: Record<SpanDescription['kind'], SpanKind> = {
  server: SpanKind.SERVER,
  internal: SpanKind.INTERNAL,
  client: SpanKind.CLIENT,
}

/**
 * Spans are made when a request has ended, from the times that it has kept: one that is not sampled costs two ids.
 * Nothing is registered globally, so that an application may use OpenTelemetry in its own way.
 */
export const createTraces = (options: { settings: TelemetrySettings; logger: Logger; metrics: Metrics }): Traces => {
  const { settings, logger, metrics } = options
  const dropped = metrics.counter(
    'surrogate_gateway_spans_dropped_total',
    'Spans that the collector did not get: no room to wait (full), or not taken (refused)',
    ['because'],
  )
  for (const because of ['full', 'refused']) dropped.inc({ because }, 0)
  let waiting = 0
  const exporter = reporting<ReadableSpan[]>(new OTLPTraceExporter(exporterOptions(settings, 'traces')), {
    signal: 'traces',
    logger,
    onBegin: ({ length }) => {
      waiting -= length
    },
    onFailed: ({ length }) => dropped.inc({ because: 'refused' }, length),
  })
  const ids = { traceId: '', spanId: '' }
  const provider = new TracerProvider({
    resource: resourceOf(settings),
    // What is not sampled never comes here.
    sampler: new AlwaysOnSampler(),
    spanLimits: { attributeValueLengthLimit },
    idGenerator: { generateTraceId: () => ids.traceId, generateSpanId: () => ids.spanId },
    spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize, scheduledDelayMillis, exportTimeoutMillis })],
  })
  const tracer = provider.getTracer('surrogate')
  const sampler = new TraceIdRatioBasedSampler(settings.sample)
  let closing = false

  /** @param offset from `performance.now()` to the time of day, in ms. */
  const add = (traceId: string, parent: Context, offset: number, description: SpanDescription): Context => {
    const { kind, name, spanId = randomHex(8), startedAt, endedAt, failed, attributes } = description
    Object.assign(ids, { traceId, spanId })
    const span = tracer.startSpan(name, { kind: kinds[kind], startTime: startedAt + offset, attributes }, parent)
    if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
    waiting++
    span.end(endedAt + offset)
    return traceApi.setSpan(parent, span)
  }

  return {
    samples: (traceId) => sampler.shouldSample(ROOT_CONTEXT, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED,
    record(context) {
      const { trace } = context
      if (!trace?.times || closing) return
      const now = performance.now()
      const [request, ...parts] = requestSpans(context, trace, now)
      if (!request) return
      if (waiting + parts.length >= maxQueueSize) return dropped.inc({ because: 'full' }, parts.length + 1)
      const offset = Date.now() - now
      const within = add(trace.traceId, callerOf(trace), offset, request)
      for (const part of parts) add(trace.traceId, within, offset, part)
    },
    async close() {
      closing = true
      await Promise.race([provider.shutdown().catch(() => {}), delay(lastChanceMs, undefined, { ref: false })])
    },
  }
}

const callerOf = ({ traceId, parentId, state }: RequestTrace): Context =>
  parentId === undefined
    ? ROOT_CONTEXT
    : traceApi.setSpanContext(ROOT_CONTEXT, {
        traceId,
        spanId: parentId,
        traceFlags: TraceFlags.SAMPLED,
        isRemote: true,
        ...(state !== undefined && { traceState: createTraceState(state) }),
      })
