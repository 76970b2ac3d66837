import { isIPv6 } from 'node:net'
import { z } from 'zod'
import {
  type AnswerOf,
  type EndpointName,
  type InspectionEndpoint,
  inspectionEndpoints,
} from '../../../gateway/inspection/api.ts'
import { StartupError } from '../../../platform/startup-error.ts'
import type { AccessToken } from './access-token.ts'

/** The inspection API of a running gateway. */
export interface InspectionClient {
  readonly url: string
  /** Undefined: the gateway has no such thing (404). Throws `StartupError`. */
  ask<Name extends EndpointName>(name: Name, asked: Asked): Promise<AnswerOf<Name> | undefined>
  /** The answer as it comes. Throws `StartupError`. */
  open(name: EndpointName, asked: Asked & { signal: AbortSignal }): Promise<ReadableStream<Uint8Array>>
}

interface Asked {
  /** `:request` of the path. */
  request?: string
  /** Members without a value are not sent. */
  query?: Record<string, string | undefined>
}

const timeoutMs = 30_000

const problemDocument = z.object({ detail: z.string().optional(), title: z.string().optional() })

/** From where the gateway runs. */
export const inspectionUrlOf = ({ host, port, tls }: { host: string; port: number; tls?: unknown }): string => {
  const everywhere: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  const reached = everywhere[host] ?? host
  return `${tls ? 'https' : 'http'}://${isIPv6(reached) ? `[${reached}]` : reached}:${port}`
}

export const createInspectionClient = (url: string, token: AccessToken): InspectionClient => {
  const send = async (
    name: EndpointName,
    { request = '', query = {} }: Asked,
    signal: AbortSignal,
  ): Promise<Response> => {
    const { method, path } = inspectionEndpoints[name] as InspectionEndpoint
    const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const target = new URL(path.replace(':request', encodeURIComponent(request)), url)
    target.search = new URLSearchParams(given).toString()
    const authorization = `Bearer ${(await token.get()).reveal()}`
    const headers = headersOf(authorization)
    return fetch(target, { method, headers, redirect: 'error', signal }).catch((cause) => {
      if (signal.aborted && signal.reason?.name !== 'TimeoutError') throw cause
      throw new StartupError(`The gateway does not answer at ${url}.`, {
        hint: 'Is it running, and is this its inspection listener? See --url.',
        exitCode: 3,
        cause,
      })
    })
  }

  return {
    url,
    async ask(name, asked) {
      const answer = await send(name, asked, AbortSignal.timeout(timeoutMs))
      const body: unknown = await answer.json().catch(() => undefined)
      if (answer.status === 404) return undefined
      if (!answer.ok) throw refusal(url, answer, body)
      const parsed = inspectionEndpoints[name].answer.safeParse(body)
      if (!parsed.success) throw notOurs(url, answer)
      return parsed.data as never
    },
    async open(name, { signal, ...asked }) {
      const answer = await send(name, asked, signal)
      if (!answer.ok) throw refusal(url, answer, await answer.json().catch(() => undefined))
      if (!answer.body || !answer.headers.get('content-type')?.startsWith('text/event-stream'))
        throw notOurs(url, answer)
      return answer.body
    },
  }
}

/** A token with a line break in it, say, would be repeated in the error of `Headers`. */
const headersOf = (authorization: string): Headers => {
  try {
    return new Headers({ authorization })
  } catch {
    throw new StartupError('The token holds characters that no token has.', {
      hint: 'Is the file one line, the token?',
    })
  }
}

const refusal = (url: string, { status }: Response, body: unknown): StartupError => {
  const { detail, title } = problemDocument.safeParse(body).data ?? {}
  const why = detail ?? title ?? `status ${status}`
  if (status === 401 || status === 403)
    return new StartupError(`The gateway at ${url} refuses the token: ${why}`, {
      hint: 'It needs the audience that gateway.yaml names under inspection, and the scope inspect.',
    })
  return new StartupError(`The gateway at ${url} cannot tell: ${why}`, {
    hint: status >= 500 ? 'Its log says more.' : 'See surrogate gateway inspect --help.',
    exitCode: status >= 500 ? 3 : 2,
  })
}

const notOurs = (url: string, { status }: Response): StartupError =>
  new StartupError(`What answers at ${url} is no inspection listener of this version (status ${status}).`, {
    hint: 'See inspection: in gateway.yaml, and --url.',
    exitCode: 3,
  })
