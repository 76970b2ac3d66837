import type { Metrics } from '../../platform/metrics.ts'
import type { RequestContext } from '../request/request-context.ts'

/** In seconds. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** The status that stands for "the client left before an answer". */
const clientLeft = 499

export interface RequestMetrics {
  finished(context: RequestContext): void
  /** Of a request that could not be read: it has no route, and took no time that could be told. */
  unparsed(status: number): void
}

/**
 * Counts finished requests by route and status. The counts are plain numbers until a scrape asks: a labelled counter of
 * prom-client costs more than the rest of the bookkeeping together.
 */
export const createRequestMetrics = (metrics: Metrics): RequestMetrics => {
  const total = metrics.counter('surrogate_gateway_requests_total', 'Finished requests', ['route', 'status'])
  const seconds = metrics.histogram('surrogate_gateway_request_seconds', 'Time to the end of the answer', buckets, [
    'route',
  ])
  const pending = new Map<string, { observe: (seconds: number) => void; byStatus: Map<number, number> }>()
  metrics.onCollect(() => {
    for (const [route, { byStatus }] of pending) {
      for (const [status, count] of byStatus) if (count > 0) total.inc({ route, status: String(status) }, count)
      byStatus.clear()
    }
  })
  const count = (route: string, status: number) => {
    let row = pending.get(route)
    if (!row) {
      const timer = seconds.labels(route)
      row = { observe: (value) => timer.observe(value), byStatus: new Map() }
      pending.set(route, row)
    }
    row.byStatus.set(status, (row.byStatus.get(status) ?? 0) + 1)
    return row
  }
  return {
    finished({ route, response, startedAt }) {
      const status = response.headersSent ? response.statusCode : clientLeft
      const { observe } = count(route?.id ?? '', status)
      // How long a WebSocket was open says nothing about how fast anything is.
      if (status !== 101) observe((performance.now() - startedAt) / 1000)
    },
    unparsed: (status) => void count('', status === 0 ? clientLeft : status),
  }
}
