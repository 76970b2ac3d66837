import { createWire } from './wire.ts'

/**
 * A browser as far as signing in needs one: a cookie jar and one connection that is kept. It follows nothing by itself
 * and costs little, because it shares a processor with others.
 */
export interface Browser {
  get: (path: string) => Promise<Visit>
  /** As a page of the same origin does. */
  post: (path: string, form: Record<string, string>) => Promise<Visit>
  /** As a script of such a page does. */
  send: (path: string, body: object, headers?: readonly string[]) => Promise<Visit>
  /** As an application does that is no page: without cookies, over the same connection. */
  call: (path: string, form: Record<string, string>) => Promise<Visit>
  /** Forgets everything: somebody else sits down. */
  clear: (cookies?: readonly Cookie[]) => void
  cookies: () => Cookie[]
  close: () => void
}

export interface Visit {
  status: number
  body: string
  location: string | undefined
  /** As the header says it. */
  retryAfter: string | undefined
}

export interface Cookie {
  name: string
  value: string
  path: string
}

/**
 * `origin`: what the server calls itself, wherever it listens. `address`: where a proxy says that the browser is, to a
 * server that believes it.
 */
export const createBrowser = ({
  port,
  origin,
  address,
}: {
  port: number
  origin: string
  address?: string
}): Browser => {
  const wire = createWire(port)
  const { host } = new URL(origin)
  const forwarded = address === undefined ? [] : [`x-forwarded-for: ${address}`]
  const jar = new Map<string, Cookie>()

  const keep = (head: string) => {
    for (const [, line = ''] of head.matchAll(/\r\nset-cookie: *([^\r]*)/gi)) {
      const [pair = '', ...attributes] = line.split(/; */)
      const [name = '', value = ''] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
      const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice(5) ?? '/'
      if (value === '') jar.delete(name)
      else jar.set(name, { name, value, path })
    }
  }

  const visit = async (method: string, path: string, headers: readonly string[], body = ''): Promise<Visit> => {
    const request = [`${method} ${path} HTTP/1.1`, `host: ${host}`, ...forwarded, ...headers, '', body]
    const answer = await wire.send(request.join('\r\n'))
    keep(answer.head)
    return {
      status: answer.status,
      body: answer.body.toString(),
      location: /\r\nlocation: *([^\r]*)/i.exec(answer.head)?.[1],
      retryAfter: /\r\nretry-after: *([^\r]*)/i.exec(answer.head)?.[1],
    }
  }
  const navigation = (path: string): string[] => {
    const cookies = [...jar.values()].filter((cookie) => path.startsWith(cookie.path))
    return [
      'user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
      'accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
      'accept-language: en-US,en;q=0.5',
      'sec-fetch-mode: navigate',
      ...(cookies.length > 0 ? [`cookie: ${cookies.map(({ name, value }) => `${name}=${value}`).join('; ')}`] : []),
    ]
  }
  const submit = (path: string, form: Record<string, string>, headers: readonly string[]) => {
    const body = new URLSearchParams(form).toString()
    const type = 'content-type: application/x-www-form-urlencoded'
    return visit('POST', path, [...headers, type, `content-length: ${body.length}`], body)
  }

  const fromOwnPage = [`origin: ${origin}`, 'sec-fetch-site: same-origin']

  return {
    get: (path) => visit('GET', path, navigation(path)),
    post: (path, form) => submit(path, form, [...navigation(path), ...fromOwnPage]),
    send: (path, content, headers = []) => {
      const body = JSON.stringify(content)
      const type = ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]
      return visit('POST', path, [...navigation(path), ...fromOwnPage, ...headers, ...type], body)
    },
    call: (path, form) => submit(path, form, ['accept: application/json']),
    clear: (cookies = []) => {
      jar.clear()
      for (const cookie of cookies) jar.set(cookie.name, cookie)
    },
    cookies: () => [...jar.values()],
    close: wire.close,
  }
}
