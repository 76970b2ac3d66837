import { isIPv6 } from 'node:net'
import { z } from 'zod'
import { type GatewayInspection, gatewayInspection } from '../../gateway/inspection/upstreams.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { tableLines } from '../cli/table.ts'

const timeoutMs = 5_000

/** The listener for operators, from where the gateway runs. */
export const adminUrlOf = ({ host, port }: { host: string; port: number }): string => {
  const everywhere: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  const reached = everywhere[host] ?? host
  return `http://${isIPv6(reached) ? `[${reached}]` : reached}:${port}`
}

/** Asks a running gateway. Throws `StartupError` when there is none, or it answers something else. */
export const askGateway = async (adminUrl: string): Promise<GatewayInspection> => {
  const hint = 'Is it running, and is this its admin listener? See --admin.'
  const url = URL.canParse('/inspect', adminUrl) ? new URL('/inspect', adminUrl) : undefined
  if (!url) throw new StartupError(`${adminUrl} is no address.`, { hint: 'Such as http://127.0.0.1:9300.' })
  const answer = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(timeoutMs) }).catch((cause) => {
    throw new StartupError(`The gateway does not answer at ${adminUrl}.`, { hint, cause })
  })
  const body: unknown = await answer.json().catch(() => undefined)
  const parsed = z.object({ gateway: gatewayInspection }).safeParse(body)
  if (!parsed.success)
    throw new StartupError(`What answers at ${adminUrl} is no gateway of this version (status ${answer.status}).`, {
      hint,
    })
  return parsed.data.gateway
}

type Inspected = GatewayInspection['upstreams'][number]

/** Each upstream with a table of its targets. */
export const inspectionText = ({ revision, upstreams }: GatewayInspection): string =>
  [`revision ${revision}`, ...upstreams.map(upstreamText)].join('\n\n').concat('\n')

const upstreamText = ({ name, balance, running, overdrawn, targets, names }: Inspected): string => {
  const how = typeof balance === 'string' ? balance : `hash: ${balance.hash}`
  const used = targets.filter(({ state }) => state === 'in').length
  return [
    `${name} (${how}): ${used} of ${targets.length} well, ${running} running`,
    ...(overdrawn ? ['  Too many are out: all of them are used.'] : []),
    ...names.flatMap(({ host, problem }) =>
      problem === undefined ? [] : [`  ${host} cannot be resolved (${problem}): its last addresses are used.`],
    ),
    ...tableLines(headings, targets.map(rowOf), { right: numbers }).map((line) => `  ${line}`),
  ].join('\n')
}

const headings = ['TARGET', 'STATE', 'WEIGHT', 'RUNNING', 'ANSWERED', 'FAILED', 'EJECTED', 'LABELS']
const numbers = ['WEIGHT', 'RUNNING', 'ANSWERED', 'FAILED', 'EJECTED']

const rowOf = (target: Inspected['targets'][number]): string[] => [
  target.name,
  stateText(target),
  String(target.weight),
  String(target.running),
  String(target.answered),
  String(target.failed),
  String(target.ejections),
  Object.entries(target.labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(' '),
]

const stateText = ({ state, health, reason, ejectedForMs, share }: Inspected['targets'][number]): string => {
  const why = [
    ...(health === 'unhealthy' ? [reason ?? 'checks fail'] : []),
    ...(ejectedForMs === undefined ? [] : [`ejected for ${Math.ceil(ejectedForMs / 1_000)} s`]),
    ...(state === 'in' && health === 'healthy' ? ['healthy'] : []),
    ...(state === 'in' && share < 1 ? [`${Math.round(share * 100)}% of its share`] : []),
  ]
  return [state, ...why].join(', ')
}
