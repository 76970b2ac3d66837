import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { freshProofSeconds, requireFreshProof } from '../../base/authorization.ts'
import type { RequestOrigin } from '../../base/client-address.ts'
import { overloaded, problem } from '../../base/errors/problems.ts'
import { parseInput } from '../../base/parse-input.ts'
import { readJson } from '../../base/request-body.ts'
import type { ConsoleSession } from '../session-store.ts'
import type { GatewayAnswer, GatewayClient, Question } from './client.ts'
import { createFanOut, type FanOut } from './fan-out.ts'
import { type Gateway, GatewayTrouble } from './gateways.ts'
import type { JoinedStreams } from './joined-stream.ts'
import type { RecordChange } from './recorded-change.ts'
import type { TokenFor } from './tokens.ts'

/** The person who asks. */
export interface GatewaysCaller {
  session: ConsoleSession
  /** The session as it is now, without using it. */
  peek(): Promise<ConsoleSession | undefined>
}

/** `/console/gateways` and all below it. */
export type GatewaysEndpoint = (
  request: IncomingMessage,
  response: ServerResponse,
  caller: GatewaysCaller,
) => Promise<void>

export interface GatewaysDependencies {
  /** Asked each time: some are known only when they run. */
  gateways(): readonly Gateway[]
  /** Of gateways that have none of their own. */
  audience: string
  client: GatewayClient
  tokenFor: TokenFor
  streams: JoinedStreams
  recordChange: RecordChange
  originOf(request: IncomingMessage): RequestOrigin
  now(): Date
}

const filter = {
  sid: z.string().max(1_024).optional(),
  subject: z.string().max(1_024).optional(),
  route: z.string().max(64).optional(),
  verdict: z.enum(['allowed', 'denied', 'failed']).optional(),
  gateway: z.string().max(32).optional(),
}
const listQuery = z.strictObject({
  ...filter,
  request: z.string().max(256).optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
})
const streamQuery = z.strictObject({ ...filter, since: z.iso.datetime({ offset: true }).optional() })
const nothing = z.strictObject({})

/** Of what waits for its readers, in bytes. */
const mostUnread = 67_108_864
/** For an answer of one gateway: the tests of its policies take long. In ms. */
const longestMs = 60_000

export const createGatewaysEndpoint = (dependencies: GatewaysDependencies): GatewaysEndpoint => {
  const { client, tokenFor, streams, recordChange, originOf, now } = dependencies
  const { list, find, states, sessions }: FanOut = createFanOut({ client, tokenFor })
  let unread = 0

  const send = (response: ServerResponse, status: number, content: Buffer, headers: Record<string, string> = {}) => {
    if (unread + content.length > mostUnread) throw overloaded()
    unread += content.length
    response.once('close', () => {
      unread -= content.length
    })
    const type = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': content.length }
    response.writeHead(status, { ...headers, ...type, 'Cache-Control': 'no-store' }).end(content)
  }
  const sendJson = (response: ServerResponse, body: unknown) => send(response, 200, Buffer.from(JSON.stringify(body)))

  const named = (name: string | undefined): readonly Gateway[] => {
    const all = dependencies.gateways()
    const wanted = name === undefined ? all : all.filter((gateway) => gateway.name === name)
    if (name !== undefined && wanted.length === 0) throw noSuchGateway()
    return wanted
  }

  const ask = (gateway: Gateway, question: Question): Promise<GatewayAnswer> =>
    client.ask(gateway, question, longestMs).catch((error: unknown) => {
      if (!(error instanceof GatewayTrouble)) throw error
      const { name } = gateway
      throw problem('console.gateway_unavailable', { detail: error.message, data: { gateway: name }, cause: error })
    })

  /** What changes a gateway does lasting harm in the wrong hands. It is not given up when its page goes. */
  const change = (request: IncomingMessage, { session }: GatewaysCaller, gateway: Gateway, question: Place) => {
    const [name, path] = [gateway.name, question.path.join('/')]
    return recordChange({ session, origin: originOf(request), gateway: name, path }, async (tellBody) => {
      const token = tokenFor(session, gateway.audience)
      requireFresh(session, now())
      const body = await readJson(request)
      tellBody(body)
      return ask(gateway, { ...question, method: 'PUT', body, token })
    })
  }

  /** One gateway's own answer. */
  const pass = async (request: IncomingMessage, response: ServerResponse, caller: GatewaysCaller, asked: Asked) => {
    const [name, ...path] = asked.segments
    const [gateway] = named(name)
    if (!gateway || path.length === 0 || path.join('/') === 'decisions/stream') throw problem('guard.not_found')
    const method = (['GET', 'POST', 'PUT'] as const).find((one) => one === request.method)
    if (!method) throw problem('guard.method_not_allowed', { headers: { Allow: 'GET, POST, PUT' } })
    const place: Place = { path, query: Object.fromEntries(asked.query) }
    const read = async () => {
      const token = tokenFor(caller.session, gateway.audience)
      const body = method === 'GET' ? undefined : await readJson(request)
      const left = new AbortController()
      response.once('close', () => left.abort())
      return ask(gateway, { ...place, method, body, token, signal: left.signal })
    }
    const answer = await (method === 'PUT' ? change(request, caller, gateway, place) : read())
    const retry = answer.retryAfter
    send(response, answer.status, answer.body, retry && /^\d{1,5}$/.test(retry) ? { 'Retry-After': retry } : {})
  }

  const stream = async (response: ServerResponse, { session, peek }: GatewaysCaller, query: URLSearchParams) => {
    const { gateway, since, ...rest } = parseInput(streamQuery, Object.fromEntries(query))
    const gateways = named(gateway)
    await streams.open(response, { gateways, filter: rest, since, session, peek })
  }

  return async (request, response, caller) => {
    const asked = readPath(request)
    const { segments, query } = asked
    const { session } = caller
    const [first, second, third] = segments
    // Whoever may not ask learns so, and no more; an attempt to change a gateway is recorded first.
    const isKnown = second !== undefined && dependencies.gateways().some(({ name }) => name === first)
    const isChange = request.method === 'PUT' && isKnown
    if (!isChange) tokenFor(session, dependencies.audience)
    if (first !== undefined && first !== 'decisions' && first !== 'sessions')
      return pass(request, response, caller, asked)
    if (request.method !== 'GET') throw problem('guard.method_not_allowed', { headers: { Allow: 'GET' } })
    if (first === 'decisions' && segments.length === 1) {
      const { gateway, ...wanted } = parseInput(listQuery, Object.fromEntries(query))
      return sendJson(response, await list(named(gateway), session, wanted))
    }
    if (first === 'decisions' && second === 'stream' && segments.length === 2) return stream(response, caller, query)
    parseInput(nothing, Object.fromEntries(query))
    const all = named(undefined)
    if (first === undefined)
      return sendJson(response, { gateways: await states(all, session), audience: dependencies.audience })
    if (first === 'sessions' && second !== undefined && segments.length === 2)
      return sendJson(response, { gateways: await sessions(all, session, second) })
    if (
      first === 'decisions' &&
      second !== undefined &&
      (segments.length === 2 || (segments.length === 3 && third === 'why'))
    )
      return sendJson(response, await find(all, session, segments))
    throw problem('guard.not_found')
  }
}

/** Of a question to one gateway. */
type Place = Pick<Question, 'path' | 'query'>

interface Asked {
  /** Below `/console/gateways`, decoded. */
  segments: string[]
  query: URLSearchParams
}

const readPath = ({ url = '' }: IncomingMessage): Asked => {
  const [path = '', search = ''] = url.split('?', 2)
  const segments = path.split('/').slice(3).map(decodeURIComponent)
  // What could be read as another path is no segment of one.
  const isOdd = segments.some((one) => /^\.{0,2}$|[/\\\p{Cc}]/u.test(one) || one.length > 1_024)
  if (isOdd || segments.length > 5) throw problem('guard.not_found')
  const query = new URLSearchParams(search)
  if (new Set(query.keys()).size !== query.size)
    throw problem('guard.invalid_input', { detail: 'A parameter is there twice.' })
  return { segments, query }
}

const noSuchGateway = () => problem('guard.not_found', { detail: 'The console asks no gateway of this name.' })

/** As the Management API holds it. */
const requireFresh = ({ authTime }: ConsoleSession, now: Date): void => {
  const isFresh = now.getTime() / 1_000 - authTime <= freshProofSeconds
  requireFreshProof({ person: { isFresh } })
}
