import { z } from 'zod'
import { setting } from '../../../platform/config.ts'
import { parseNetwork } from '../../../platform/http/address-guard.ts'
import { AnswerTooLarge } from '../../../platform/http/bounded-client.ts'
import {
  createOutboundAgent,
  createTargetPolicy,
  type Resolve,
  TargetNotAllowed,
} from '../../../platform/http/outbound.ts'
import { readWhole } from '../../../platform/http/read-whole.ts'
import type { FetchedAnswer, FetchRequest } from './messages.ts'

/**
 * What scripts reach by `fetch`: hosts that the operator names, at addresses that are allowed when the connection is
 * made. Bounded in time and size; redirects are answers; no cookies, no credentials but those the script sends.
 */
export interface ClaimsFetch {
  /** Rejects with a message for the script. */
  fetch(request: FetchRequest): Promise<FetchedAnswer>
  close(): Promise<void>
}

export interface ClaimsFetchOptions {
  /** `name` or `name:port`, in lower case. None: scripts can ask nobody. */
  hosts: readonly string[]
  /** CIDRs that these may be in although they are not public. */
  allowedNetworks: readonly string[]
  /** Plain `http:` is allowed too. */
  allowHttp: boolean
  resolve?: Resolve
}

export const claimsFetchDefaults: ClaimsFetchOptions = { hosts: [], allowedNetworks: [], allowHttp: false }

const isHost = (text: string) =>
  URL.canParse(`https://${text}`) && /^[a-z\d.[\]:-]+$/.test(text) && new URL(`https://${text}`).pathname === '/'

/** The settings behind `ClaimsFetchOptions`. */
export const claimsFetchSettings = {
  /** Host names, with a port when it is not the scheme's own, comma-separated. Default none: `fetch` is off. */
  CLAIMS_FETCH_HOSTS: setting
    .list()
    .transform((hosts) => hosts.map((host) => host.toLowerCase()))
    .refine((hosts) => hosts.every(isHost), 'must be host names such as users.example or users.example:8443')
    .default([]),
  /** CIDRs, comma-separated. Default none: public addresses only. */
  CLAIMS_FETCH_ALLOWED_NETWORKS: setting
    .list()
    .refine((list) => list.every((item) => parseNetwork(item)), 'must be CIDRs such as 10.0.0.0/8, separated by commas')
    .default([]),
  /** Default false: `https` only. */
  CLAIMS_FETCH_ALLOW_HTTP: setting.flag().default(false),
} satisfies z.ZodRawShape

/** Of a request until its answer is read, in ms. */
const timeoutMs = 500
const maxAnswerBytes = 65_536
const maxRequestBytes = 65_536

const methods = ['GET', 'POST']

/** A script can make anything of what `fetch` sends here. */
const asWritten = z.object({
  url: z.string(),
  method: z.string(),
  headers: z.record(z.string(), z.string()),
  body: z.string().optional(),
})

/** What the connection is made of belongs to us (RFC 9110 §7.6.1); the host is that of the URL. */
const ownHeaders = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const refuse = (message: string): never => {
  throw new Error(message)
}

export const createClaimsFetch = (options: ClaimsFetchOptions): ClaimsFetch => {
  const { hosts, allowedNetworks, allowHttp, resolve } = options
  const allowed = new Set(hosts)
  const policy = createTargetPolicy({ allowedNetworks, allowHttp, resolve })
  const agent = createOutboundAgent({
    policy,
    connectTimeoutMs: timeoutMs,
    connections: 16,
    // Framing may take as much again.
    maxBodyBytes: 2 * maxAnswerBytes,
  })

  const targetOf = (text: string): URL => {
    const url = URL.canParse(text) ? new URL(text) : refuse('The URL cannot be read.')
    if (!allowed.has(url.host)) refuse(`The operator does not allow requests to ${url.host || 'this URL'}.`)
    const refused = policy.refusalOfUrl(url)
    return refused === undefined ? url : refuse(refused)
  }

  const headersOf = (headers: Record<string, string>): Record<string, string> => {
    const own = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
    const taken = own.find(([name]) => ownHeaders.has(name))
    if (taken) refuse(`The header ${taken[0]} cannot be set.`)
    return { accept: 'application/json, */*', 'user-agent': 'surrogate', ...Object.fromEntries(own) }
  }

  return {
    async fetch(request) {
      const { success, data } = asWritten.safeParse(request)
      if (!success) return refuse('The request cannot be read.')
      const { url: text, method, headers, body } = data
      const url = targetOf(text)
      if (!methods.includes(method)) refuse(`The method must be ${methods.join(' or ')}.`)
      if (body !== undefined && Buffer.byteLength(body) > maxRequestBytes) refuse('The body is too large.')
      const sent = headersOf(headers)
      // One clock for all of it: undici's own start over with every byte.
      const signal = AbortSignal.timeout(timeoutMs)
      try {
        const answer = await agent.dispatcherOf('claims').request({
          origin: url.origin,
          path: url.pathname + url.search,
          method: method as 'GET' | 'POST',
          headers: sent,
          body: body ?? null,
          signal,
        })
        const whole = await readWhole(answer.body, maxAnswerBytes, () => tooLarge)
        return { status: answer.statusCode, headers: plain(answer.headers), body: whole.toString() }
      } catch (error) {
        throw new Error(reasonOf(error, signal.aborted))
      }
    },
    close: () => agent.close(),
  }
}

const tooLarge = new Error(`The answer is larger than ${maxAnswerBytes} bytes.`)

const plain = (headers: Record<string, string | string[] | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? []].flat().join(', ')]))

const reasonOf = (error: unknown, isLate: boolean): string => {
  if (isLate) return `There was no whole answer within ${timeoutMs} ms.`
  if (error === tooLarge || error instanceof TargetNotAllowed || error instanceof AnswerTooLarge)
    return (error as Error).message
  return 'The host could not be reached.'
}
