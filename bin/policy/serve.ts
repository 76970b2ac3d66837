import { openTls } from '../../gateway/listener/tls.ts'
import { createMasks } from '../../gateway/logs/mask.ts'
import { loadConfig } from '../../platform/config.ts'
import { listen } from '../../platform/http/http-server.ts'
import { isPlainHttp } from '../../platform/http/plain-http.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { openDecisionLog } from '../../policies/data-api/decision-log.ts'
import { createDataApi } from '../../policies/data-api/handler.ts'
import { followTokens } from '../../policies/data-api/tokens.ts'
import { watchPolicies } from '../../policies/decide.ts'
import { type Service, serve } from '../cli/serve.ts'
import { settings } from '../cli/settings.ts'
import { hearHangups } from '../parts/hangup.ts'
import { explainAnswers } from './explain-answers.ts'
import type { Invocation } from './invocation.ts'
import { type ServeOptions, serveOptions } from './serve-options.ts'

/** `surrogate policy serve`: OPA's Data API over compiled rules, until SIGTERM. SIGHUP reads everything again. */
export const servePolicies = async (invocation: Invocation): Promise<number> => {
  const options = serveOptions(invocation)
  const { LOG_LEVEL, OPA_BIN } = loadConfig(settings.policy, process.env)
  return serve({ name: 'policy', level: LOG_LEVEL }, (service) => openServer(service, options, OPA_BIN))
}

/** How long requests that run may take after SIGTERM, in ms. */
const graceMs = 10_000
/** Time for the head, the whole request, and the next one of a connection, in ms. */
const timeouts = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 65_000 }
const mostConnections = 4_096

const openServer = async (service: Service, options: ServeOptions, opaBin: string | undefined): Promise<void> => {
  const { logger, lifecycle, metrics } = service
  const { path, host, port, tokenFile, units, maxInput } = options
  const onHangup = hearHangups(lifecycle)
  const tokens = tokenFile === undefined ? undefined : await followTokens(tokenFile, logger)
  if (tokens) lifecycle.onStop('tokens', tokens.close)
  const policies = await watchPolicies({ path, logger, opaBin, units, input: maxInput, metrics, name: 'served' })
  lifecycle.onStop('policies', policies.close)
  const log = openLog(service, options)
  const handler = createDataApi({
    policies: policies.current,
    maxInput,
    tokens,
    logger,
    metrics,
    record: log?.write,
    explain: await explainAnswers(path, opaBin),
  })
  const tls = await openServerTls(service, options)
  const { server, url, close } = await listen({
    name: 'the policy server',
    host,
    port,
    setting: '--addr',
    handler,
    tls: tls?.options,
    server: { ...timeouts, connectionsCheckingInterval: 2_000, noDelay: true, insecureHTTPParser: false },
  })
  server.maxConnections = mostConnections
  tls?.follow(server as unknown as Parameters<typeof tls.follow>[0])
  lifecycle.onStop('policy server', () => close(graceMs))
  onHangup(() => {
    void policies.reload()
    log?.reopen()
  })
  if (isPlainHttp(url)) logger.warn('tokens and inputs cross the network without TLS; see --tls-cert-file')
  const { revision, entrypoints } = policies.current()
  logger.info({ url, revision, entrypoints }, 'policy server listening')
}

const openServerTls = async ({ lifecycle, logger, metrics }: Service, { tls }: ServeOptions) => {
  if (!tls) return undefined
  const settings = { certificates: [tls], minVersion: '1.2' as const }
  const opened = await openTls({ settings, http2: false, handshakeTimeout: timeouts.headersTimeout, logger, metrics })
  lifecycle.onStop('certificates', opened.close)
  return opened
}

const openLog = ({ lifecycle, logger, metrics }: Service, { decisionLog }: ServeOptions) => {
  if (!decisionLog) return undefined
  const { to, masks } = decisionLog
  try {
    const log = openDecisionLog({ to, logger, metrics, ...(masks.length > 0 && { mask: createMasks(masks) }) })
    lifecycle.onStop('decision log', log.close)
    return log
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const hint = 'Name a file that the server may write, with --decision-log, or stdout.'
    throw new StartupError(`The decision log cannot be opened: ${to} (${code})`, { hint, cause })
  }
}
