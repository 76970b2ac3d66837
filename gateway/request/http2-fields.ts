import { METHODS } from 'node:http'
import { refuse } from './canonical-target.ts'
import { eachField, type FieldList } from './field-list.ts'

/** RFC 9113 §8.3.1: each at most once. */
const pseudoFields: ReadonlySet<string> = new Set([':method', ':scheme', ':authority', ':path'])

/** RFC 9113 §8.2.2: of a connection, which HTTP/2 frames otherwise. */
const connectionFields: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'http2-settings'],
])

/** Of HTTP/1.1 Node's parser takes no others, and none in lower case. */
const methods: ReadonlySet<string> = new Set(METHODS)

/**
 * The header fields of a request over HTTP/2 as HTTP/1.1 would have them: `host` in place of `:authority`, one
 * `cookie`, no pseudo-header fields. Throws `AppError` `invalid_request` (400) where RFC 9113 §8 calls a request
 * malformed, and where `:authority` and `host` differ: two readers could take one or the other.
 */
export const http2Fields = (raw: FieldList): string[] => {
  const pseudo: Record<string, string> = {}
  const fields: string[] = []
  const hosts: string[] = []
  let cookie: string | undefined
  eachField(raw, (name, value) => {
    if (name.startsWith(':')) {
      if (!pseudoFields.has(name)) throw refuse('The request has a pseudo-header field that is not served.')
      if (pseudo[name] !== undefined) throw refuse(`The request has more than one ${name} field.`)
      pseudo[name] = value
    } else if (connectionFields.has(name)) throw refuse(`HTTP/2 has no ${name} field.`)
    else if (name === 'te' && value.toLowerCase() !== 'trailers') throw refuse('The only te of HTTP/2 is trailers.')
    else if (name === 'host') hosts.push(value)
    // RFC 9113 §8.2.3: clients may send each pair as a field of its own.
    else if (name === 'cookie') cookie = cookie === undefined ? value : `${cookie}; ${value}`
    else fields.push(name, value)
  })
  if (pseudo[':scheme'] !== undefined && pseudo[':scheme'] !== 'https') throw refuse('The :scheme must be https.')
  if (!methods.has(pseudo[':method'] ?? '')) throw refuse('The :method is not one that is served.')
  const authority = pseudo[':authority']
  if (authority !== undefined) {
    const other = hosts.find((host) => host.toLowerCase() !== authority.toLowerCase())
    if (other !== undefined) throw refuse('The fields :authority and host differ.')
    fields.push('host', authority)
  } else for (const host of hosts) fields.push('host', host)
  if (cookie !== undefined) fields.push('cookie', cookie)
  return fields
}
