import { request } from 'undici'
import { StartupError } from '../platform/startup-error.ts'
import { createCookieJar } from './cookie-jar.ts'
import { type HtmlPage, readHtml } from './html-page.ts'

/** One request of the walk, as it is shown: nothing in it is a secret. */
export interface Hop {
  method: 'GET' | 'POST'
  url: string
  /** Names of what a form sent. */
  fields?: readonly string[]
  status: number
  /** Where the answer leads. */
  location?: string
  /** Of a page. */
  title?: string
}

export interface Answer {
  url: URL
  status: number
  /** Absolute. */
  location: URL | undefined
  /** Undefined when it is no HTML. */
  page: HtmlPage | undefined
  body: string
}

/**
 * Requests as a browser without scripts makes them, to one origin only, with its cookies. Redirects are for the caller
 * to follow.
 */
export interface Browser {
  open(url: URL): Promise<Answer>
  /** Posts a form of a page of this origin. */
  submit(url: URL, fields: URLSearchParams): Promise<Answer>
  /** Outside the page, as the application does: no cookies. */
  call(url: URL, options?: { form?: URLSearchParams; authorization?: string | undefined }): Promise<Answer>
}

/** ms. */
const patience = 30_000
/** Bytes: far more than a page has. */
const longestBody = 1_048_576

export const createBrowser = ({ onHop }: { onHop: (hop: Hop) => void }): Browser => {
  const jar = createCookieJar()

  const send = async (method: 'GET' | 'POST', url: URL, headers: Record<string, string>, form?: URLSearchParams) => {
    const answer = await request(url, {
      method,
      headers: { ...headers, ...(form && { 'content-type': 'application/x-www-form-urlencoded' }) },
      body: form?.toString() ?? null,
      headersTimeout: patience,
      bodyTimeout: patience,
    }).catch((cause: unknown) => {
      throw unreachable(url, cause)
    })
    const body = await textOf(url, answer.body)
    const { location, 'content-type': type } = answer.headers
    const target = typeof location === 'string' ? (URL.parse(location, url.href) ?? undefined) : undefined
    const page = typeof type === 'string' && /^text\/html\b/i.test(type) ? readHtml(body) : undefined
    onHop({
      method,
      url: shownUrl(url),
      ...(form && { fields: [...new Set(form.keys())] }),
      status: answer.statusCode,
      ...(target && { location: shownUrl(target) }),
      ...(page && page.title !== '' && { title: page.title }),
    })
    return { headers: answer.headers, answer: { url, status: answer.statusCode, location: target, page, body } }
  }

  const asBrowser = async (
    method: 'GET' | 'POST',
    url: URL,
    headers: Record<string, string>,
    form?: URLSearchParams,
  ) => {
    const cookie = jar.header(url)
    const accept = 'text/html,application/xhtml+xml;q=0.9'
    const sent = { accept, 'accept-language': 'en', ...headers, ...(cookie !== '' && { cookie }) }
    const { headers: received, answer } = await send(method, url, sent, form)
    jar.store(url, [received['set-cookie'] ?? []].flat())
    return answer
  }

  return {
    open: (url) => asBrowser('GET', url, { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }),
    submit: (url, fields) =>
      asBrowser(
        'POST',
        url,
        {
          origin: url.origin,
          'sec-fetch-site': 'same-origin',
          'sec-fetch-mode': 'navigate',
          'sec-fetch-dest': 'document',
        },
        fields,
      ),
    async call(url, { form, authorization } = {}) {
      const headers = { accept: 'application/json', ...(authorization !== undefined && { authorization }) }
      return (await send(form ? 'POST' : 'GET', url, headers, form)).answer
    },
  }
}

const textOf = async (url: URL, body: AsyncIterable<Uint8Array>): Promise<string> => {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of body) {
      size += chunk.length
      if (size > longestBody) break
      chunks.push(chunk)
    }
  } catch (cause) {
    throw unreachable(url, cause)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const unreachable = (url: URL, cause: unknown): StartupError =>
  new StartupError(`${url.origin} cannot be reached: ${(cause as Error).message}`, {
    hint: 'Is the issuer running, and --issuer its address?',
    exitCode: 3,
    cause,
  })

/** Parameters whose values are no secrets. */
const shown: ReadonlySet<string> = new Set(
  `client_id response_type response_mode redirect_uri scope resource prompt max_age acr_values ui_locales
   code_challenge_method iss error error_description`.split(/\s+/),
)

/** With `…` in the place of whatever could be a secret: codes, states, nonces, ids. */
export const shownUrl = (url: URL): string => {
  const query = [...url.searchParams].map(([name, value]) => {
    const text = shown.has(name) ? encodeURIComponent(value).replaceAll('%2F', '/').replaceAll('%3A', ':') : '…'
    return `${encodeURIComponent(name)}=${text}`
  })
  const bare = new URL(url)
  bare.search = ''
  bare.hash = ''
  bare.username = ''
  bare.password = ''
  return `${bare.href}${query.length > 0 ? `?${query.join('&')}` : ''}${url.hash === '' ? '' : '#…'}`
}

/** For a terminal: the request, and below it the answer. */
export const hopLine = ({ method, url, fields, status, location, title }: Hop): string => {
  const sent = fields === undefined ? '' : ` (${fields.join(', ')})`
  const answered = location === undefined ? (title === undefined ? '' : ` "${title}"`) : ` → ${location}`
  return `${method.padEnd(4)} ${url}${sent}\n     ${status}${answered}`
}
