import { type GatewayConfig, loadGatewayConfig } from '../../gateway/config/load.ts'
import type { AnswerOf } from '../../gateway/inspection/api.ts'
import { explainMatch } from '../../gateway/inspection/match.ts'
import { routesInOrder } from '../../gateway/inspection/routes.ts'
import { createRouter } from '../../gateway/routing/router.ts'
import type { Secret } from '../../platform/secret.ts'
import { StartupError } from '../../platform/startup-error.ts'
import type { Terminal } from '../cli/terminal.ts'
import { accessToken } from './inspection/access-token.ts'
import { createInspectionClient, type InspectionClient, inspectionUrlOf } from './inspection/client.ts'
import { tailDecisions } from './inspection/tail.ts'
import { decisionsText, matchText, routesText, whyText } from './inspection/texts.ts'
import { decisionLine } from './inspection/words.ts'

/** `surrogate gateway inspect <verb>`: what the inspection API of a running gateway tells, as text or JSON. */

export interface InspectValues {
  config: string
  url?: string | undefined
  'token-file'?: string | undefined
  offline?: boolean | undefined
  json?: boolean | undefined
  sid?: string | undefined
  subject?: string | undefined
  route?: string | undefined
  verdict?: string | undefined
  limit?: string | undefined
}

export interface InspectSettings {
  INSPECTION_TOKEN?: Secret | undefined
  INSPECTION_CLIENT_ID?: string | undefined
  INSPECTION_CLIENT_SECRET?: Secret | undefined
}

interface Invocation {
  values: InspectValues
  /** After the verb. */
  args: readonly string[]
  own: InspectSettings
  terminal: Terminal
}

interface Verb {
  usage: string
  options: readonly (keyof InspectValues)[]
  /** How many there may be after the verb. */
  args: readonly [least: number, most: number]
  run(invocation: Invocation): Promise<number>
}

const reaching = ['config', 'url', 'token-file', 'json'] as const
const filters = ['sid', 'subject', 'route', 'verdict'] as const

export const inspectVerbs: Readonly<Record<string, Verb>> = {
  routes: { usage: 'routes', options: [...reaching, 'offline'], args: [0, 0], run: (invocation) => routes(invocation) },
  match: {
    usage: 'match [<method>] <url>',
    options: [...reaching, 'offline'],
    args: [1, 2],
    run: (invocation) => match(invocation),
  },
  decisions: {
    usage: 'decisions',
    options: [...reaching, ...filters, 'limit'],
    args: [0, 0],
    run: (invocation) => decisions(invocation),
  },
  why: { usage: 'why <request id>', options: reaching, args: [1, 1], run: (invocation) => why(invocation) },
  tail: { usage: 'tail', options: [...reaching, ...filters], args: [0, 0], run: (invocation) => tail(invocation) },
}

/** As JSON where that is asked for, else as lines. */
const print = ({ values, terminal }: Invocation, answer: unknown, lines: () => readonly string[]): void =>
  terminal.say(values.json ? `${JSON.stringify(answer, null, 2)}\n` : `${lines().join('\n')}\n`)

const loaded = ({ values, terminal }: Invocation): Promise<GatewayConfig> =>
  loadGatewayConfig(values.config, terminal.env)

/** The running gateway, and how its token is obtained. */
const reach = async (invocation: Invocation) => {
  const { values, own } = invocation
  const { INSPECTION_CLIENT_ID: id, INSPECTION_CLIENT_SECRET: secret } = own
  if ((id === undefined) !== (secret === undefined))
    throw new StartupError('INSPECTION_CLIENT_ID and INSPECTION_CLIENT_SECRET belong together.', {
      hint: 'Set both, or neither.',
    })
  const token = accessToken(
    {
      tokenFile: values['token-file'],
      token: own.INSPECTION_TOKEN,
      client: id !== undefined && secret ? { id, secret } : undefined,
    },
    () => loaded(invocation),
  )
  return { token, client: createInspectionClient(values.url ?? (await urlOf(invocation)), token) }
}

const urlOf = async (invocation: Invocation): Promise<string> => {
  const { inspection, file } = await loaded(invocation)
  if (inspection) return inspectionUrlOf(inspection)
  throw new StartupError(`${file} configures no inspection, so there is nobody to ask.`, {
    hint: 'Add inspection: { audience } to it, or name the listener of a gateway with --url.',
  })
}

/** The file, where no gateway is to be asked or none could be. */
const offlineConfig = async (invocation: Invocation): Promise<GatewayConfig | undefined> => {
  const { url, offline } = invocation.values
  if (offline && url !== undefined)
    throw new StartupError('--offline asks no gateway, and --url names one.', { hint: 'Leave one of them out.' })
  if (url !== undefined) return undefined
  const config = await loaded(invocation)
  if (!offline && config.inspection) return undefined
  invocation.terminal.complain(`Read from ${config.file}; no running gateway was asked.\n`)
  return config
}

const routes = async (invocation: Invocation): Promise<number> => {
  const offline = await offlineConfig(invocation)
  const answer = offline
    ? { routes: routesInOrder(offline.routes) }
    : await everyRoute((await reach(invocation)).client)
  print(invocation, answer, () => routesText(answer))
  return 0
}

const everyRoute = async (client: InspectionClient): Promise<Pick<AnswerOf<'routes'>, 'routes'>> => {
  const all: AnswerOf<'routes'>['routes'] = []
  let cursor: string | undefined
  do {
    const page = await found(client, 'routes', { query: { cursor } })
    all.push(...page.routes)
    cursor = page.cursor
  } while (cursor !== undefined)
  return { routes: all }
}

/** 1 when no route takes it, so that scripts can tell. */
const match = async (invocation: Invocation): Promise<number> => {
  const { args } = invocation
  const [method, url] = args.length === 1 ? ['GET', args[0]!] : [args[0]!.toUpperCase(), args[1]!]
  if (!/^[A-Z][A-Z-]{0,31}$/.test(method) || !/^https?:\/\/[^/]/i.test(url))
    throw new StartupError(`${method} ${url} is no request.`, {
      hint: 'Such as: match GET https://api.example.test/orders/42',
    })
  const offline = await offlineConfig(invocation)
  const answer = offline
    ? explainMatch({ routes: offline.routes, router: createRouter(offline.routes) }, method, url)
    : await found((await reach(invocation)).client, 'match', { query: { method, url } })
  print(invocation, answer, () => matchText({ method, url }, answer))
  return answer.route !== undefined && answer.refused === undefined ? 0 : 1
}

const filterOf = ({ sid, subject, route, verdict }: InspectValues) => ({ sid, subject, route, verdict })

const decisions = async (invocation: Invocation): Promise<number> => {
  const { values } = invocation
  const { client } = await reach(invocation)
  const answer = await found(client, 'decisions', { query: { ...filterOf(values), limit: values.limit } })
  print(invocation, answer, () => decisionsText(answer, new Date()))
  return 0
}

const why = async (invocation: Invocation): Promise<number> => {
  const { args, terminal } = invocation
  const { client } = await reach(invocation)
  const answer = await client.ask('why', { request: args[0]! })
  if (!answer) {
    terminal.complain(`The gateway at ${client.url} keeps no decision with this id.\n`)
    return 1
  }
  print(invocation, answer, () => whyText(answer, new Date()))
  return 0
}

/** Until Ctrl-C. Sentences about the stream go where errors go. */
const tail = async (invocation: Invocation): Promise<number> => {
  const { values, terminal } = invocation
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  const lost = await tailDecisions({
    ...(await reach(invocation)),
    filter: filterOf(values),
    onDecision: (record) => terminal.say(`${values.json ? JSON.stringify(record) : decisionLine(record)}\n`),
    say: (text) => terminal.complain(`${text}\n`),
    signal: stopping.signal,
  })
  if (lost > 0) terminal.complain(`${lost} decisions were missing in all.\n`)
  return 0
}

const found = async <Name extends 'routes' | 'match' | 'decisions'>(
  client: InspectionClient,
  name: Name,
  asked: Parameters<InspectionClient['ask']>[1] = {},
) => {
  const answer = await client.ask(name, asked)
  if (answer) return answer
  throw new StartupError(`What answers at ${client.url} is no inspection listener of this version (status 404).`, {
    hint: 'See inspection: in gateway.yaml, and --url.',
    exitCode: 3,
  })
}
