import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader'

type Attributes = Record<string, string | number | boolean>

export interface ReceivedSpan {
  traceId: string
  spanId: string
  /** Empty for one without a parent. */
  parentSpanId: string
  traceState: string
  name: string
  kind: 'INTERNAL' | 'SERVER' | 'CLIENT'
  /** In ms since 1970. */
  startedAt: number
  endedAt: number
  failed: boolean
  attributes: Attributes
  resource: Attributes
}

export interface ReceivedMetric {
  name: string
  unit: string
  kind: 'gauge' | 'sum' | 'histogram'
  points: { attributes: Attributes; value?: number; count?: number; bucketCounts?: number[]; bounds?: number[] }[]
  resource: Attributes
}

export interface OtlpCollector {
  readonly url: string
  readonly port: number
  /** Of exports that were answered with 200. */
  readonly spans: ReceivedSpan[]
  /** Of the latest export of each instance. */
  readonly metrics: ReceivedMetric[]
  readonly requests: { path: string; headers: IncomingMessage['headers'] }[]
  /** Everything that was received, as bytes in latin1. */
  readonly raw: string
  /** The status that is answered from now on; `hang`: nothing is. */
  answer: () => number | 'hang'
  close(): Promise<void>
}

const definition = loadSync(fileURLToPath(new URL('./otlp.proto', import.meta.url)), {
  longs: Number,
  enums: String,
  defaults: true,
  oneofs: true,
})
const messageOf = (service: 'otlp.Traces' | 'otlp.Metrics', body: Buffer) =>
  (definition[service] as ServiceDefinition)['Export']!.requestDeserialize(body) as never

type WireAttributes = { key: string; value: Value }[]
interface Spans {
  resourceSpans: { resource: { attributes: WireAttributes }; scopeSpans: { spans: WireSpan[] }[] }[]
}
interface WireSpan extends Pick<ReceivedSpan, 'traceState' | 'name' | 'kind'> {
  traceId: Buffer
  spanId: Buffer
  parentSpanId: Buffer
  startTimeUnixNano: number
  endTimeUnixNano: number
  status?: { code: string }
  attributes: WireAttributes
}
interface Measurements {
  resourceMetrics: { resource: { attributes: WireAttributes }; scopeMetrics: { metrics: WireMetric[] }[] }[]
}
type WireMetric = { name: string; unit: string; data: ReceivedMetric['kind'] } & {
  [Kind in ReceivedMetric['kind']]?: { dataPoints: WirePoint[] }
}
interface WirePoint {
  attributes: WireAttributes
  asDouble?: number
  asInt?: number
  count: number
  bucketCounts: number[]
  explicitBounds: number[]
}
interface Value {
  value: string
  [member: string]: unknown
}
const attributesOf = (list: WireAttributes): Attributes =>
  Object.fromEntries(
    list.map(({ key, value }) => [
      key,
      value[value.value.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())] as string,
    ]),
  )

/** What spans and metrics are sent to: takes OTLP over HTTP in protobuf. */
export const startOtlpCollector = async (): Promise<OtlpCollector> => {
  const self = {
    spans: [] as ReceivedSpan[],
    metrics: [] as ReceivedMetric[],
    requests: [] as OtlpCollector['requests'],
    raw: '',
    answer: (): number | 'hang' => 200,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  const takeSpans = (body: Buffer) => {
    const { resourceSpans } = messageOf('otlp.Traces', body) as Spans
    for (const { resource, scopeSpans } of resourceSpans)
      for (const span of scopeSpans.flatMap((scope) => scope.spans))
        self.spans.push({
          traceId: span.traceId.toString('hex'),
          spanId: span.spanId.toString('hex'),
          parentSpanId: span.parentSpanId.toString('hex'),
          traceState: span.traceState,
          name: span.name,
          kind: span.kind,
          startedAt: span.startTimeUnixNano / 1e6,
          endedAt: span.endTimeUnixNano / 1e6,
          failed: span.status?.code === 'ERROR',
          attributes: attributesOf(span.attributes),
          resource: attributesOf(resource.attributes),
        })
  }
  const takeMetrics = (body: Buffer) => {
    const { resourceMetrics } = messageOf('otlp.Metrics', body) as Measurements
    for (const { resource, scopeMetrics } of resourceMetrics) {
      const attributes = attributesOf(resource.attributes)
      const instance = attributes['service.instance.id']
      self.metrics = self.metrics.filter((metric) => metric.resource['service.instance.id'] !== instance)
      for (const metric of scopeMetrics.flatMap((scope) => scope.metrics))
        self.metrics.push({
          name: metric.name,
          unit: metric.unit,
          kind: metric.data,
          resource: attributes,
          points: (metric[metric.data] ?? { dataPoints: [] }).dataPoints.map((point) => ({
            attributes: attributesOf(point.attributes),
            ...(metric.data === 'histogram'
              ? { count: point.count, bucketCounts: point.bucketCounts, bounds: point.explicitBounds }
              : { value: point.asDouble ?? point.asInt }),
          })),
        })
    }
  }
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const path = request.url ?? ''
    self.requests.push({ path, headers: request.headers })
    self.raw += body.toString('latin1')
    const status = self.answer()
    if (status === 'hang') return
    if (status === 200) path.endsWith('/v1/traces') ? takeSpans(body) : takeMetrics(body)
    response.writeHead(status).end()
  }
  const server = createServer((request, response) => void take(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(self, { url: `http://127.0.0.1:${port}`, port })
}
