import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Logger } from '../../platform/logger.ts'
import type { PolicySet } from '../policy-set.ts'
import { ApiError, invalid, methodNotAllowed } from './api-error.ts'
import type { DecisionEvent } from './decision-log.ts'
import { type Document, findDocument } from './document.ts'
import { evaluate } from './evaluate.ts'
import type { ReadBody } from './read-body.ts'
import { inputOfBody, parseJson } from './read-input.ts'
import { isOn } from './target.ts'

/** What the endpoints of decisions stand on. */
export interface DataParts {
  /** Asked for each request: it may have been replaced. */
  policies: () => PolicySet
  readBody: ReadBody
  logger: Logger
  /** Receives each decision, answers with an error included. Default: nobody, and answers have no `decision_id`. */
  record?: ((event: DecisionEvent) => void) | undefined
  /** Lines that tell which rules made the decision. Throws `ApiError`. Default: `?explain` is refused. */
  explain?: ((document: Document, input: unknown) => Promise<string[]>) | undefined
}

/** One request for a decision. */
export interface DataRequest {
  request: IncomingMessage
  /** Of the document, with slashes and as it was sent. */
  path: string
  query: URLSearchParams | undefined
}

interface Question {
  input: unknown
  /** Reading the input. */
  parseNs: number
  /** Whether there should have been an input. */
  lacksInput?: boolean
}

/** `POST` and `GET /v1/data/<path>`: `{"result": …}`, without the member where no rule gives one. */
export const answerV1 = async (parts: DataParts, asked: DataRequest): Promise<object> => {
  const { request, query } = asked
  const startedAt = performance.now()
  if (request.method !== 'POST' && request.method !== 'GET') throw readOnly()
  if (isOn(query, 'strict-builtin-errors')) {
    throw invalid('strict-builtin-errors: compiled rules have no such mode; a function that fails is undefined')
  }
  const question = request.method === 'POST' ? await postedQuestion(parts, request) : queryQuestion(query)
  const { set, document, result, decisionId, metrics } = decide(parts, asked, question, startedAt)
  const explanation = await explanationOf(parts, { query, document, input: question.input })
  return {
    ...(decisionId !== undefined && { decision_id: decisionId }),
    ...(explanation && { explanation }),
    ...(query && isOn(query, 'provenance') && { provenance: provenanceOf(set) }),
    ...(query && (isOn(query, 'metrics') || isOn(query, 'instrument')) && { metrics: metrics() }),
    ...(question.lacksInput && { warning: inputMissing }),
    ...(result !== undefined && { result }),
  }
}

/** `POST /v0/data/<path>`: input and answer are the bodies, for webhooks; 404 where no rule gives one. */
export const answerV0 = async (parts: DataParts, asked: DataRequest): Promise<unknown> => {
  if (asked.request.method !== 'POST') throw methodNotAllowed(['POST'], 'v0 answers POST only')
  const startedAt = performance.now()
  const { document, result } = decide(parts, asked, await wholeBody(parts, asked.request), startedAt)
  if (result === undefined) throw undefinedDocument(document)
  return result
}

/** `POST /`: the default decision, `system/main`. */
export const answerDefault = (parts: DataParts, asked: Omit<DataRequest, 'path'>): Promise<unknown> => {
  const path = 'system/main'
  if (asked.request.method === 'POST' && !parts.policies().entrypoints.includes(path)) {
    throw new ApiError(
      404,
      'undefined_document',
      `document missing: data.system.main is the default decision, and no entrypoint`,
    )
  }
  return answerV0(parts, { ...asked, path })
}

const undefinedDocument = ({ path }: Document) =>
  new ApiError(404, 'undefined_document', `document undefined: data.${path.replaceAll('/', '.')}`)

/** For everything that would change documents or rules. */
export const readOnly = () =>
  methodNotAllowed(
    ['GET', 'POST'],
    'this server does not change: policies and documents are files, followed as they change',
  )

const postedQuestion = async ({ readBody }: DataParts, request: IncomingMessage): Promise<Question> => {
  const text = await readBody(request)
  const startedAt = performance.now()
  const input = inputOfBody(text)
  return { input, parseNs: nanoseconds(startedAt), lacksInput: input === undefined }
}

const wholeBody = async ({ readBody }: DataParts, request: IncomingMessage): Promise<Question> => {
  const text = await readBody(request)
  const startedAt = performance.now()
  return { input: text.trim() === '' ? null : parseJson(text, 'the body'), parseNs: nanoseconds(startedAt) }
}

/** Of several the last one counts, as in OPA. */
const queryQuestion = (query: URLSearchParams | undefined): Question => {
  const text = query?.getAll('input').at(-1)
  const startedAt = performance.now()
  return {
    input: text === undefined ? undefined : parseJson(text, 'the parameter input'),
    parseNs: nanoseconds(startedAt),
  }
}

const decide = (parts: DataParts, { request, path }: DataRequest, question: Question, startedAt: number) => {
  const { policies, logger, record } = parts
  const set = policies()
  const document = findDocument(set, path)
  const decisionId = record && randomUUID()
  const evaluationStartedAt = performance.now()
  let evaluationNs = 0
  const metrics = () => ({
    timer_rego_input_parse_ns: question.parseNs,
    timer_rego_query_eval_ns: evaluationNs,
    timer_server_handler_ns: nanoseconds(startedAt),
  })
  const tell = (outcome: Pick<DecisionEvent, 'result' | 'error'>) =>
    record?.({
      decisionId: decisionId!,
      revision: set.revision,
      path: document.path,
      input: question.input,
      requestedBy: request.socket.remoteAddress,
      metrics: metrics(),
      ...outcome,
    })
  try {
    const result = evaluate(set, document, question.input, logger)
    evaluationNs = nanoseconds(evaluationStartedAt)
    tell({ result })
    return { set, document, result, decisionId, metrics }
  } catch (error) {
    evaluationNs = nanoseconds(evaluationStartedAt)
    tell({ error: error instanceof ApiError ? (error.errors?.[0]?.message ?? error.message) : 'internal error' })
    throw error
  }
}

const nanoseconds = (since: number): number => Math.round((performance.now() - since) * 1e6)

const explanationOf = (
  { explain }: DataParts,
  { query, document, input }: { query: URLSearchParams | undefined; document: Document; input: unknown },
): Promise<string[]> | undefined => {
  const mode = query?.get('explain')
  // OPA takes any other word for "off".
  if (mode === undefined || mode === null || !explainModes.has(mode)) return undefined
  if (!explain) throw invalid('explain needs a folder of rules and a compiler: start the server with both')
  return explain(document, input)
}

const explainModes = new Set(['notes', 'fails', 'full', 'debug'])

const provenanceOf = ({ revision }: PolicySet) => ({ bundles: { policies: { revision } } })

const inputMissing = { code: 'api_usage_warning', message: "'input' key missing from the request" }
