import { isUtf8 } from 'node:buffer'
import { parseJsonObject } from '../../../platform/jwt/json-object.ts'
import { OAuthError } from '../../base/errors/problems.ts'

/** The parameters of a request, each at most once; those sent without a value are left out (RFC 6749 §3.2). */
export type Parameters = ReadonlyMap<string, string>

const invalid = (description: string, status?: number) =>
  new OAuthError('invalid_request', description, status === undefined ? {} : { status })

/** Postgres text cannot hold NUL; JSON can spell what UTF-8 cannot. */
export const refuseUnstorable = (name: string, value: string): void => {
  if (value.includes('\0') || name.includes('\0')) throw invalid('A parameter contains a NUL character.')
  if (!value.isWellFormed()) throw invalid('A parameter contains an unpaired surrogate.')
}

const addParameter = (parameters: Map<string, string>, name: string, value: string) => {
  refuseUnstorable(name, value)
  if (parameters.has(name)) {
    // RFC 8707 §2 lets `resource` repeat; a token of ours has exactly one audience.
    if (name === 'resource') throw new OAuthError('invalid_target', 'Only one resource can be asked for at a time.')
    throw invalid(`The parameter ${name.slice(0, 64)} is repeated.`)
  }
  parameters.set(name, value)
}

const withoutEmpty = (parameters: Map<string, string>): Parameters => {
  for (const [name, value] of parameters) if (value === '') parameters.delete(name)
  return parameters
}

const decodeForm = (text: string): string => {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch {
    throw invalid('The request body has an invalid percent-escape.')
  }
}

/** Strict: URLSearchParams would let bad escapes and bad UTF-8 through as replacement characters. */
export const readForm = (text: string, add: (name: string, value: string) => void): void => {
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decodeForm(equals === -1 ? pair : pair.slice(0, equals))
    add(name, equals === -1 ? '' : decodeForm(pair.slice(equals + 1)))
  }
}

export const parseForm = (text: string): Parameters => {
  const parameters = new Map<string, string>()
  readForm(text, (name, value) => addParameter(parameters, name, value))
  return withoutEmpty(parameters)
}

/** The same rules for a JSON object: strings, each member once; `resource` may be a list. */
const parseJson = (text: string): Parameters => {
  const object = parseJsonObject(text)
  if (!object) throw invalid('The request body is not a JSON object with each member at most once.')
  const parameters = new Map<string, string>()
  for (const [name, value] of Object.entries(object)) {
    const values = name === 'resource' && Array.isArray(value) ? value : [value]
    for (const item of values) {
      if (typeof item !== 'string') throw invalid(`The parameter ${name.slice(0, 64)} is not a string.`)
      addParameter(parameters, name, item)
    }
  }
  return withoutEmpty(parameters)
}

const formats = new Map([
  ['application/x-www-form-urlencoded', parseForm],
  ['application/json', parseJson],
])

/** Parses a request body by its content type: a form, or JSON as some SDKs send it. */
export const parseParameters = (body: Buffer, contentType = ''): Parameters => {
  const [mediaType = ''] = contentType.split(';', 1)
  const parse = formats.get(mediaType.trim().toLowerCase())
  if (!parse) throw invalid('The content type must be application/x-www-form-urlencoded.', 415)
  if (!isUtf8(body)) throw invalid('The request body is not UTF-8.')
  return parse(body.toString())
}

/** RFC 6749 §2.3.1: parameters of a token request never stand in the URL, where logs and histories would keep them. */
export const refuseParametersInUrl = (url: string): void => {
  const query = url.indexOf('?')
  if (query === -1) return
  const names = new URLSearchParams(url.slice(query + 1)).keys()
  for (const name of names) {
    if (urlForbidden.has(name)) throw invalid(`The parameter ${name} must be sent in the body, not in the URL.`)
  }
}

const urlForbidden = new Set([
  ...['client_id', 'client_secret', 'client_assertion', 'client_assertion_type', 'grant_type', 'scope', 'resource'],
  'organization_id',
  ...[
    'subject_token',
    'subject_token_type',
    'actor_token',
    'actor_token_type',
    'code',
    'code_verifier',
    'refresh_token',
    'token',
  ],
])
