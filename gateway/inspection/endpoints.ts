import type { z } from 'zod'
import { readWhole } from '../../platform/http/read-whole.ts'
import { problem } from '../refusals/problems.ts'
import { jsonBody } from '../request/json-body.ts'
import type { CanonicalRequest, ReadRequest } from '../request/request-context.ts'
import { type EndpointName, type InspectionEndpoint, inspectionEndpoints } from './api.ts'

/** An endpoint that a request is for. */
export interface FoundEndpoint {
  name: EndpointName
  endpoint: InspectionEndpoint
  /** `:name` of the path, where it has one. */
  named: string
}

const table = Object.entries(inspectionEndpoints).map(([name, endpoint]) => ({
  name: name as EndpointName,
  endpoint: endpoint as InspectionEndpoint,
  segments: endpoint.path.split('/').slice(1),
}))

/** The first one that fits: `/decisions/stream` stands before `/decisions/:request`. */
export const findEndpoint = ({ method, segments }: CanonicalRequest): FoundEndpoint | undefined => {
  const row = table.find(
    ({ endpoint, segments: wanted }) =>
      endpoint.method === method &&
      wanted.length === segments.length &&
      wanted.every((one, index) => one.startsWith(':') || one === segments[index]),
  )
  if (!row) return undefined
  const { name, endpoint, segments: wanted } = row
  const place = wanted.findIndex((one) => one.startsWith(':'))
  return { name, endpoint, named: place < 0 ? '' : segments[place]! }
}

/** Of a body, in bytes, unless its endpoint says otherwise. */
const usualBody = 131_072

/** Query and body as their schemas read them. Throws `AppError`: 400, 413. */
export const readAsked = async ({ endpoint, named }: FoundEndpoint, { request: { query }, incoming }: ReadRequest) => {
  const parameters: Record<string, string> = {}
  for (const [name, value] of new URLSearchParams(query)) {
    if (Object.hasOwn(parameters, name)) throw refused(`The parameter ${printable(name)} is there twice.`)
    parameters[name] = value
  }
  const parsed = parse(endpoint.query, parameters)
  if (!endpoint.body) return { query: parsed, named, body: undefined }
  const { largestBody = usualBody } = endpoint
  const bytes = await readWhole(incoming.iterator({ destroyOnReturn: false }), largestBody, () =>
    problem('content_too_large'),
  )
  return { query: parsed, named, body: parse(endpoint.body, jsonBody(bytes)) }
}

const parse = (schema: z.ZodType, value: unknown): unknown => {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  if (issue?.code === 'unrecognized_keys') throw refused(`There is no ${issue.keys.map(printable).join(', ')} here.`)
  const member = issue?.path.map((step) => printable(String(step))).join('.') || 'The body'
  if (issue?.code === 'invalid_value') throw refused(`${member} must be one of ${issue.values.map(String).join(', ')}.`)
  throw refused(`${member} cannot be read.`)
}

const printable = (text: string): string => text.replace(/[^\w.-]/g, '?').slice(0, 64)

const refused = (detail: string) => problem('invalid_request', { detail })
