import type { RequestListener } from 'node:http'
import { type Clock, systemClock } from '../platform/clock.ts'
import type { HealthResult } from '../platform/health.ts'
import { createLifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import { createMetrics, type Metrics } from '../platform/metrics.ts'
import { createRefusalThrottle } from './authorize/refusal-throttle.ts'
import type { GatewayConfig, Inspection } from './config/load.ts'
import { type Access, createAccess } from './inspection/access.ts'
import { type Answers, createAnswers } from './inspection/answers.ts'
import { findEndpoint, readAsked } from './inspection/endpoints.ts'
import { createEvaluation } from './inspection/evaluation.ts'
import type { Inspected } from './inspection/inspected.ts'
import { type InspectionListener, openInspectionListener } from './inspection/listener.ts'
import { createRules } from './inspection/rules.ts'
import { createStreams } from './inspection/stream.ts'
import { createTrial } from './inspection/trial.ts'
import { createUnread } from './inspection/unread.ts'
import { openTrust } from './open-trust.ts'
import { createPipeline } from './pipeline.ts'
import type { Providers } from './providers.ts'
import { sendProblem } from './refusals/problem-response.ts'
import { problem } from './refusals/problems.ts'
import { createReadRequest } from './request/canonical-request.ts'
import { createProxyTrust } from './request/client-address.ts'
import { afterReading, newRequestContext, type ReadRequest } from './request/request-context.ts'
import type { SharedParts } from './shared-parts.ts'

/** The inspection API (`api.ts`) on its listener. */
export interface RunningInspection {
  url: string
  port: number
  /** Answers by another configuration from now on; the listener stays where it is. */
  adopt(config: GatewayConfig): Promise<void>
  /** For `/readyz`: undefined without certificates. */
  certificates: (() => HealthResult) | undefined
  close(): Promise<void>
}

type InspectableConfig = GatewayConfig & { inspection: Inspection }

export interface InspectionOptions {
  config: GatewayConfig
  inspected: Inspected
  /** Keys and revocations are those of the gateway, where it has them. */
  shared: SharedParts
  providers: Providers
  opaBin: string | undefined
  logger: Logger
  /** Of its listener and its answers. */
  metrics: Metrics
  now?: Clock | undefined
}

const isInspectable = (config: GatewayConfig): config is InspectableConfig => config.inspection !== undefined

/** Refused tokens of an address that are answered at once, in a second. */
const refusedTokens = 10
const limits = { targetLength: 16_384, headerCount: 64, headerSize: 16_384 }
/** How long running answers have when it closes. In ms. */
const closeMs = 5_000

/** What is by one configuration. */
interface Current {
  config: InspectableConfig
  access: Access
  answers: Answers
  close(): Promise<void>
}

/** Undefined where it is not configured. Throws `StartupError` for a port or a certificate that cannot be used. */
export const openInspection = async (options: InspectionOptions): Promise<RunningInspection | undefined> => {
  const { inspected, opaBin, logger, metrics, now = systemClock } = options
  if (!isInspectable(options.config)) return undefined
  // Of what verifies its tokens: that of the gateway has the same names.
  const trustMetrics = createMetrics()
  const finished = metrics.counter('surrogate_gateway_inspection_requests_total', 'Finished requests of inspection', [
    'status',
  ])
  const evaluation = createEvaluation()
  const rules = createRules({ opaBin })
  const trial = createTrial({ opaBin })
  const streams = createStreams(inspected)
  const unread = createUnread()
  const opened = metrics.gauge('surrogate_gateway_inspection_streams', 'Open streams of decisions')
  const stopCounting = metrics.onCollect(() => opened.set(streams.count))

  const open = (config: InspectableConfig): Current => {
    const lifecycle = createLifecycle({ logger })
    const issuers = config.issuers.filter(({ issuer }) => config.inspection.route.issuers.includes(issuer))
    const trust = openTrust({ ...options, config: { ...config, issuers }, lifecycle, metrics: trustMetrics, now })
    const access = createAccess({ ...trust, route: config.inspection.route, now })
    const answers = createAnswers({ config, inspected, evaluation, rules, trial, opaBin, logger, now })
    const stop = access.onRevoked(streams.check)
    return {
      config,
      access,
      answers,
      async close() {
        stop()
        await lifecycle.stop()
      },
    }
  }
  let current: Current | undefined = open(options.config)

  const answer = async (context: ReadRequest): Promise<void> => {
    const { request, response } = context
    const found = findEndpoint(request)
    // Whoever may not ask learns nothing of what there is.
    if (!current) throw problem('not_found')
    await current.access.check(context, found?.endpoint.scope)
    if (!found) throw problem('not_found')
    const { name, endpoint } = found
    const asked = { ...(await readAsked(found, context)), by: nameOf(context) }
    if (name === 'stream') {
      response.setHeaders(new Headers({ ...fields, 'content-type': 'text/event-stream', 'x-request-id': context.id }))
      const endOf = async () => (current ? current.access.endOf(context, endpoint.scope) : 'refused')
      return streams.open(response, asked.query as never, endOf)
    }
    const result = await current.answers[name](asked as never)
    const body = Buffer.isBuffer(result) ? result : Buffer.from(JSON.stringify(result))
    if (response.destroyed) return
    unread.add(response, body.length)
    response
      .writeHead(200, {
        ...fields,
        'content-type': 'application/json',
        'content-length': body.length,
        'x-request-id': context.id,
      })
      .end(body)
  }

  const run = createPipeline(
    [
      createReadRequest({ limits, trust: createProxyTrust([], 'x-forwarded') }),
      ...afterReading((context) => answer(context)),
    ],
    {
      logger,
      onFinish: ({ response }) => finished.inc({ status: response.headersSent ? String(response.statusCode) : '499' }),
      refusals: createRefusalThrottle({ perSecond: refusedTokens, metrics: trustMetrics }),
      send: (response, error, id, closing, told = error.headers, status) =>
        sendProblem(response, error, id, closing, { ...told, ...fields }, status),
    },
  )
  const handler: RequestListener = (incoming, response) => run(newRequestContext(incoming, response))

  const closeParts = async () => {
    const closing = current
    current = undefined
    stopCounting()
    streams.close()
    await Promise.all([closing?.close(), evaluation.close(), trial.close()])
  }
  const listener: InspectionListener = await openInspectionListener({
    settings: options.config.inspection,
    headerSize: limits.headerSize + limits.targetLength,
    ...{ handler, logger, metrics },
  }).catch(async (error: unknown) => {
    await closeParts()
    throw error
  })
  logger.info({ url: listener.url }, 'the gateway can be inspected')

  return {
    url: listener.url,
    port: listener.port,
    certificates: listener.certificates,
    async adopt(config) {
      const before = current
      current = isInspectable(config) ? open(config) : undefined
      streams.check()
      await before?.close()
    },
    async close() {
      streams.close()
      await listener.close(closeMs)
      await closeParts()
    },
  }
}

/** Who asks, for the log. */
const nameOf = ({ principal }: ReadRequest): string =>
  principal?.input.subject?.id ?? principal?.input.client?.id ?? 'unknown'

const fields = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
