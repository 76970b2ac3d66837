/** A browser as far as signing in needs one: a cookie jar, forms, and redirects within one origin. No scripts. */
export interface Browser {
  /** Follows redirects that stay at the issuer. The last answer says where another one would lead. */
  get(url: string): Promise<Visit>
  /** Sends a form of the page as a browser does: its hidden fields, with `values`. */
  submit(page: Visit, values?: FormFields, options?: SubmitOptions): Promise<Visit>
  /** One request, redirects not followed. */
  send(url: string, init?: RequestInit): Promise<Visit>
  /** By name. */
  cookies: Map<string, string>
  /** The `Set-Cookie` lines of all answers. */
  setCookies: string[]
}

export interface Visit {
  url: string
  status: number
  headers: Headers
  text: string
  /** Where it redirects to, absolute. */
  location: string | undefined
  forms: Form[]
}

export interface Form {
  id: string | undefined
  action: string
  method: string
  /** Of inputs that have a value by themselves. */
  fields: Record<string, string>
  /** Of all inputs and buttons. */
  names: string[]
}

type FormFields = Record<string, string | readonly string[]>

interface SubmitOptions {
  /** The form that has an input or button of this name. Default: the first one. */
  with?: string
  headers?: Record<string, string>
  follow?: boolean
}

const maxRedirects = 10

/** Of the page, as its HTML stands there. */
export const headingOf = ({ text }: Visit): string | undefined => /<h1>([\s\S]*?)<\/h1>/.exec(text)?.[1]

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", '#x27': "'" }
const unescaped = (text: string) => text.replace(/&(amp|lt|gt|quot|#39|#x27);/g, (_, name) => entities[name] ?? '')

const attribute = (tag: string, name: string): string | undefined => {
  const found = new RegExp(`\\s${name}=(?:"([^"]*)"|'([^']*)'|([^\\s>]+))`, 'i').exec(tag)
  return found ? unescaped(found[1] ?? found[2] ?? found[3] ?? '') : undefined
}

const formsOf = (html: string, url: string): Form[] =>
  [...html.matchAll(/<form\b[^>]*>[\s\S]*?<\/form>/gi)].map(([form]) => {
    const open = form.slice(0, form.indexOf('>') + 1)
    const inputs = [...form.matchAll(/<input\b[^>]*>/gi)].map(([tag]) => tag)
    const buttons = [...form.matchAll(/<button\b[^>]*>/gi)].map(([tag]) => tag)
    const isSent = (tag: string) => {
      const type = attribute(tag, 'type') ?? 'text'
      return !['checkbox', 'radio'].includes(type) || /\schecked\b/i.test(tag)
    }
    return {
      id: attribute(open, 'id'),
      action: new URL(attribute(open, 'action') ?? url, url).href,
      method: (attribute(open, 'method') ?? 'get').toUpperCase(),
      fields: Object.fromEntries(
        inputs
          .filter((tag) => isSent(tag) && attribute(tag, 'name') !== undefined)
          .map((tag) => [attribute(tag, 'name')!, attribute(tag, 'value') ?? '']),
      ),
      names: [...inputs, ...buttons].flatMap((tag) => attribute(tag, 'name') ?? []),
    }
  })

export const createBrowser = (issuerUrl: string): Browser => {
  const { origin } = new URL(issuerUrl)
  const cookies = new Map<string, string>()
  const setCookies: string[] = []

  const keep = (line: string) => {
    setCookies.push(line)
    const [pair = ''] = line.split(';')
    const [name = '', value = ''] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
    if (value === '' || /;\s*max-age=0\b/i.test(line)) cookies.delete(name)
    else cookies.set(name, value)
  }

  const send: Browser['send'] = async (url, init = {}) => {
    const target = new URL(url, origin).href
    const headers = new Headers(init.headers)
    if (cookies.size > 0 && !headers.has('cookie'))
      headers.set('cookie', [...cookies].map(([name, value]) => `${name}=${value}`).join('; '))
    const answer = await fetch(target, { ...init, headers, redirect: 'manual' })
    const text = await answer.text()
    for (const line of answer.headers.getSetCookie()) keep(line)
    const location = answer.headers.get('location')
    return {
      url: target,
      status: answer.status,
      headers: answer.headers,
      text,
      location: location === null ? undefined : new URL(location, target).href,
      forms: formsOf(text, target),
    }
  }

  const follow = async (first: Visit): Promise<Visit> => {
    let visit = first
    for (let left = maxRedirects; left > 0; left--) {
      if (visit.location === undefined || new URL(visit.location).origin !== origin) return visit
      visit = await send(visit.location)
    }
    throw new Error(`more than ${maxRedirects} redirects from ${first.url}`)
  }

  return {
    cookies,
    setCookies,
    send,
    get: async (url) => follow(await send(url)),
    async submit(page, values = {}, { with: name, headers = {}, follow: goesOn = true } = {}) {
      const form = page.forms.find(({ names }) => name === undefined || names.includes(name))
      if (form === undefined) throw new Error(`${page.url} (${page.status}) has no such form:\n${page.text}`)
      const body = new URLSearchParams()
      for (const [field, value] of Object.entries({ ...form.fields, ...values }))
        for (const item of [value].flat()) body.append(field, item as string)
      const answer = await send(form.action, {
        method: form.method,
        body,
        headers: { origin, 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate', ...headers },
      })
      return goesOn ? follow(answer) : answer
    },
  }
}
