import { setTimeout as delay } from 'node:timers/promises'
import { createHealth } from '../../platform/health.ts'
import type { PortlessServer } from '../../platform/http/http-server.ts'
import { createLogger, type Logger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { type GatewayConfig, parseGatewayConfig } from '../config/load.ts'
import { end as endServing } from '../drain.ts'
import type { ExtAuthzListener } from '../ext-authz/listener.ts'
import { createGateway } from '../gateway.ts'
import { createHotSwap, type HotSwap } from '../hot-swap.ts'
import { createRecorder, type Recorder } from '../inspection/recorder.ts'
import { type Listener, openListenerOn } from '../listener.ts'
import { createSharedParts } from '../shared-parts.ts'
import { createAskPrimary } from './ask-primary.ts'
import { type Channel, createChannel } from './channel.ts'
import { createDecisionHandlers } from './decision-handlers.ts'
import { createHandedPolicies } from './handed-policies.ts'
import { type Configuration, type PolicyBundle, primaryCalls, workerCalls } from './messages.ts'
import { type Place, shareOf } from './share.ts'
import { createTakenConnections, type TakenConnections } from './taken-connections.ts'

/** What was prepared and waits for all other workers. */
interface Change {
  takeOver(): void
  discard(): unknown
}

/**
 * The worker: a gateway with its listener that reads no files, asks nobody but the primary process, and changes when
 * that says so. `end` is called when it has drained.
 */
export const createWorker = (options: {
  /** `written` is called once the primary process will get it, even if this process ends. */
  send: (message: object, written?: () => void) => void
  end: () => void
  /** For what nobody handled. */
  onLogger: (logger: Logger) => void
}): Pick<Channel<typeof primaryCalls>, 'receive'> & Pick<TakenConnections, 'take'> => {
  const { send, end, onLogger } = options
  const health = createHealth()
  const metrics = createMetrics({ processMetrics: true })
  const shared = createSharedParts()
  const policies = createHandedPolicies({ metrics })
  const connections = createTakenConnections({ send })
  let logger: Logger
  let place: Place
  let recorder: Recorder | undefined
  let listening: { config: GatewayConfig; portSetting: string; ticketKeys: Buffer }
  let gateways: HotSwap | undefined
  let listener: Listener<PortlessServer> | undefined
  let extAuthz: ExtAuthzListener | undefined
  const changes = new Map<number, Change>()

  const build = (config: GatewayConfig) =>
    createGateway({
      config,
      logger,
      metrics,
      shared,
      recorder,
      providers: { ...asking.providers, watchPolicies: policies.watch },
    })

  const configOf = ({ file, text, environment }: Configuration): GatewayConfig =>
    shareOf(parseGatewayConfig(text, { file, env: environment }), place)

  /** The first configuration is in force at once; nobody can connect yet. */
  const begin = async (config: GatewayConfig, settle: number): Promise<Change> => {
    const { inspection } = listening.config
    recorder = inspection && createRecorder(inspection)
    const first = await createHotSwap({ config, build, health })
    gateways = first
    void first.current.ready.then(() => channel.tell('ready', undefined))
    await Promise.race([first.current.ready, delay(settle, undefined, { ref: false })])
    return { takeOver: () => {}, discard: () => {} }
  }

  const succeed = async (id: number, running: HotSwap, config: GatewayConfig, settle?: number): Promise<Change> => {
    const superseded = new AbortController()
    changes.set(id, { takeOver: () => {}, discard: () => superseded.abort() })
    const successor = await running.prepare(config, superseded.signal, settle)
    if (!successor) throw new Error('a later configuration has come')
    return {
      takeOver() {
        successor.takeOver()
        listener?.adjust(config)
      },
      discard: successor.discard,
    }
  }

  const adopt = async (id: number, bundles: readonly PolicyBundle[]) => {
    let discarded = false
    const discard = () => {
      discarded = true
    }
    changes.set(id, { takeOver: () => {}, discard })
    const prepared = await policies.prepare(bundles)
    if (discarded) prepared.discard()
    else changes.set(id, prepared)
  }

  /** It is not there when another worker could not prepare it, and this one had not begun to. */
  const take = (id: number): Change | undefined => {
    const change = changes.get(id)
    changes.delete(id)
    return change
  }

  const asking = createAskPrimary({
    call: (...call) => channel.call(...call),
    tell: (...call) => channel.tell(...call),
  })

  const channel: Channel<typeof primaryCalls> = createChannel({
    ours: workerCalls,
    theirs: primaryCalls,
    send,
    handlers: {
      start({ worker, of, log, ticketKeys, nonceKey, portSetting, first }) {
        asking.start(nonceKey)
        place = { worker, of }
        listening = { config: configOf(first), portSetting, ticketKeys: Buffer.from(ticketKeys) }
        logger = createLogger(log).child({ worker: place.worker }) as Logger
        onLogger(logger)
      },
      async prepare({ id, configuration, policies: bundles, settle }) {
        if (!configuration) return adopt(id, bundles)
        policies.hand(bundles)
        const config = configOf(configuration)
        changes.set(id, gateways ? await succeed(id, gateways, config, settle) : await begin(config, settle ?? 0))
      },
      ping: () => {},
      hold: () => gateways?.hold(),
      commit({ id }) {
        take(id)?.takeOver()
        gateways?.release()
      },
      discard: async ({ id }) => void (await take(id)?.discard()),
      async serve() {
        const running = gateways!
        const options = { ...listening, gateway: () => running.current, logger, metrics }
        listener = await openListenerOn(options, connections.serve)
        listener.adjust(running.config)
        if (listener.certificates) health.addCheck('gateway certificates', listener.certificates)
        const { extAuthz: settings } = listening.config
        if (!settings) return
        const { createExtAuthz } = await import('../ext-authz/listener.ts')
        extAuthz = await createExtAuthz({ ...options, settings })
        connections.serveExtAuthz(extAuthz)
        if (extAuthz.certificates) health.addCheck('ext_authz certificates', extAuthz.certificates)
      },
      metrics: () => metrics.snapshot(),
      health: async () => health.ready() as never,
      inspect: () => gateways!.current.inspect(),
      issuers: () => gateways!.current.trusted(),
      session: ({ sid }) => gateways!.current.session(sid),
      reopenLogs: () => gateways?.reopenLogs(),
      endKeepAlive() {
        listener?.endKeepAlive()
        extAuthz?.endKeepAlive()
      },
      async drain() {
        if (listener && gateways) await endServing({ listeners: [listener, ...(extAuthz ? [extAuthz] : [])], gateways })
        const counted = await metrics.snapshot()
        setImmediate(end)
        return counted
      },
      ...asking.handlers,
      ...createDecisionHandlers({ recorder: () => recorder, call: (...call) => channel.call(...call) }),
    },
  })
  return { receive: channel.receive, take: connections.take }
}
