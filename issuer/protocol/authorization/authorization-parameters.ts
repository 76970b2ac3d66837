import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { parseJsonObject } from '../../../platform/jwt/json-object.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import { readForm, refuseUnstorable } from '../requests/parameters.ts'
import { readBody } from '../requests/request-body.ts'

/** The parameters of an authorization request: every value of every name, in the order in which they came. */
export type AuthorizationParameters = ReadonlyMap<string, readonly string[]>

/** The values of a parameter; those that are empty count as not sent (RFC 6749 §3.1). */
export const valuesOf = (parameters: AuthorizationParameters, name: string): readonly string[] =>
  (parameters.get(name) ?? []).filter((value) => value !== '')

/** The value of a parameter that was sent exactly once. */
export const onlyValueOf = (parameters: AuthorizationParameters, name: string): string | undefined => {
  const values = parameters.get(name) ?? []
  return values.length === 1 && values[0] !== '' ? values[0] : undefined
}

/** In bytes. */
const maxLength = 16_384

const invalid = (description: string) => new OAuthError('invalid_request', description)

type Add = (name: string, value: string) => void

const readQuery = (url: string, add: Add) => {
  const query = url.indexOf('?')
  if (query !== -1) readForm(url.slice(query + 1), add)
}

/** A JSON object means what a form with its members would mean; numbers and truth values become text. */
const readJson = (text: string, add: Add) => {
  const object = parseJsonObject(text)
  if (!object) throw invalid('The request body is not a JSON object with each member at most once.')
  for (const [name, value] of Object.entries(object)) {
    const values = name === 'resource' && Array.isArray(value) ? value : [value]
    for (const item of values) {
      if (!['string', 'number', 'boolean'].includes(typeof item)) throw invalid('A member of the body is no text.')
      add(name, String(item))
    }
  }
}

const formats = new Map([
  ['application/x-www-form-urlencoded', readForm],
  ['application/json', readJson],
])

const readPosted = async (request: IncomingMessage, add: Add) => {
  const [mediaType = ''] = (request.headers['content-type'] ?? '').split(';', 1)
  const read = formats.get(mediaType.trim().toLowerCase())
  if (!read) throw invalid('The content type must be application/x-www-form-urlencoded.')
  const body = await readBody(request)
  if (body.length > maxLength) throw invalid(`The request is larger than ${maxLength} bytes.`)
  if (!isUtf8(body)) throw invalid('The request body is not UTF-8.')
  read(body.toString(), add)
}

/**
 * Reads the query of a GET, or the body of a POST: a form, or JSON as some SDKs send it. Throws `invalid_request` for
 * what is too long, is not UTF-8 or holds a NUL.
 */
export const readAuthorizationParameters = async (request: IncomingMessage): Promise<AuthorizationParameters> => {
  if (request.method !== 'POST') return readQueryParameters(request)
  const { parameters, add } = collected()
  await readPosted(request, add)
  return parameters
}

/** Those of the address, whatever the method. */
export const readQueryParameters = ({ url = '' }: Pick<IncomingMessage, 'url'>): AuthorizationParameters => {
  if (url.length > maxLength) throw invalid(`The request is larger than ${maxLength} bytes.`)
  const { parameters, add } = collected()
  readQuery(url, add)
  return parameters
}

const collected = () => {
  const parameters = new Map<string, string[]>()
  const add: Add = (name, value) => {
    refuseUnstorable(name, value)
    const values = parameters.get(name)
    if (values) values.push(value)
    else parameters.set(name, [value])
  }
  return { parameters, add }
}
