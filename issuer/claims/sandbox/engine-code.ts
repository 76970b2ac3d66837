/** Code of ours that runs in the engine of a script, when it is needed. */

/**
 * An error as one line, with the line of the script that threw it. One that throws when it is looked at is described by
 * what it throws then.
 */
export const describeError = `(error) => {
  const describe = (error) => {
    if (typeof error !== 'object' || error === null) return 'It threw ' + String(error)
    const line = /getCustomJwtClaims\\.js:(\\d+)/.exec(String(error.stack))?.[1]
    return String(error.name ?? 'Error') + ': ' + String(error.message) + (line ? ' (line ' + line + ')' : '')
  }
  try { return describe(error) } catch (next) {
    try { return describe(next) } catch { return 'It threw what cannot be shown.' }
  }
}`

/** A value for the console. */
export const showValue = `(value) => {
  try { return JSON.stringify(value) ?? String(value) } catch { return String(value) }
}`

/** `fetch`, and what ends one of its requests. Answers come in as JSON. */
export const fetchInside = `(begin) => {
  const { parse, stringify } = JSON
  const { entries, fromEntries } = Object
  const waiting = {}
  let begun = 0
  const fetch = (url, options) => new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options ?? {}
    const sent = fromEntries(entries(headers).map(([name, value]) => [name, String(value)]))
    const text = body === undefined || body === null ? undefined : String(body)
    const request = stringify({ url: String(url), method: String(method), headers: sent, body: text })
    const number = begun++
    waiting[number] = { resolve, reject }
    const refused = begin(number, request)
    if (refused !== undefined) reject(new TypeError(refused))
  })
  const ended = (number, answer) => {
    const { failed, status, headers, body } = parse(answer)
    if (failed !== undefined) return waiting[number].reject(new TypeError(failed))
    waiting[number].resolve({
      ok: status >= 200 && status < 300,
      status,
      headers,
      text: async () => body,
      json: async () => parse(body),
    })
  }
  return { fetch, ended }
}`
