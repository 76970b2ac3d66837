import type { AnswerOf, EndpointName } from '../../gateway/inspection/api.ts'
import { inspectionEndpoints } from '../../gateway/inspection/api.ts'
import type { TokenIssuer } from './token-issuer.ts'

export const inspectionAudience = 'https://gateway.test/inspection'

/** Asks the inspection API of a gateway, and reads each answer by its schema. */
export const inspectionClient = (url: () => string, issuer: TokenIssuer) => {
  const token = (claims: object = {}) =>
    issuer.sign({ aud: inspectionAudience, scope: 'inspect evaluate', client_id: 'console', ...claims })
  const call = async (path: string, { claims = {}, ...init }: RequestInit & { claims?: object } = {}) =>
    fetch(url() + path, { ...init, headers: { authorization: `Bearer ${await token(claims)}`, ...init.headers } })
  return {
    token,
    call,
    async get<Name extends EndpointName>(name: Name, path: string = inspectionEndpoints[name].path) {
      const answer = await call(path)
      const body: unknown = await answer.json()
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(body)}`)
      return inspectionEndpoints[name].answer.parse(body) as AnswerOf<Name>
    },
    async post(path: string, body: unknown, init: RequestInit & { claims?: object } = {}) {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const answer = await call(path, { method: 'POST', body: text, ...init })
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    },
    /** The events of a stream, as they come. */
    async stream(path = '/decisions/stream', claims: object = {}) {
      const abort = new AbortController()
      const answer = await call(path, { signal: abort.signal, claims })
      const events: { event: string; data: Record<string, unknown> }[] = []
      const reading = readEvents(answer, (one) => events.push(one)).catch(() => {})
      return { answer, events, ended: reading, close: () => abort.abort() }
    },
  }
}

const readEvents = async (
  answer: Response,
  onEvent: (event: { event: string; data: Record<string, unknown> }) => void,
) => {
  let rest = ''
  for await (const text of answer.body!.pipeThrough(new TextDecoderStream())) {
    rest += text
    const blocks = rest.split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const event = /^event: (.*)$/m.exec(block)?.[1]
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (event && data) onEvent({ event, data: JSON.parse(data) })
    }
  }
}
