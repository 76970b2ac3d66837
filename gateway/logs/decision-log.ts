import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { DecisionLogSettings } from '../config/settings/logs.ts'
import type { RequestContext } from '../request/request-context.ts'
import { createDecisionEvents, type DecisionEvent, type DecisionEventsOptions } from './decision-event.ts'
import { createDecisionSample } from './decision-sample.ts'
import { openLog } from './output.ts'

/** One line a request in the event format of OPA's decision logs, so that tools for those read ours. */
export interface DecisionLog {
  /** @param event the request's, where it was made already. */
  write(context: RequestContext, event?: DecisionEvent): void
  reopen(): void
  close(): Promise<void>
}

export const createDecisionLog = (
  options: Pick<DecisionEventsOptions, 'labels' | 'revision'> & {
    settings: DecisionLogSettings
    logger: Logger
    metrics: Metrics
    /** For `sample`. Default: `Math.random`. */
    random?: () => number
  },
): DecisionLog => {
  const { settings, logger, metrics, random = Math.random } = options
  const events = createDecisionEvents(options)
  const sample = settings.sample && createDecisionSample({ shares: settings.sample, metrics, random })
  const { write, reopen, close } = openLog({ name: 'decision', settings, logger, metrics })
  return {
    reopen,
    close,
    write(context, event) {
      const rate = sample ? sample.take(context) : 1
      if (rate === 0) return
      const { line, members } = event ?? events(context)
      write(rate === 1 ? line : JSON.stringify({ ...members, sample: rate }))
    },
  }
}
