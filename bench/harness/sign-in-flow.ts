import { createHash, randomBytes } from 'node:crypto'
import type { Browser, Visit } from './browser.ts'

/**
 * A whole sign-in as a browser and a single-page application go through it, at whatever issuer: the authorization
 * request, redirects, a page with a form for user and password if there is one, and the code for tokens.
 */
export interface Site {
  port: number
  /** What the issuer calls itself. */
  origin: string
  paths: { authorize: string; token: string; jwks: string }
  client: { id: string; redirectUri: string }
  resource: string
  scope: string
}

export interface Person {
  identifier: string
  password: string
}

export interface Authorized {
  code: string
  verifier: string
  nonce: string
  /** That it took. */
  requests: number
}

/** What an application sends and holds against the answer. */
export type Sent = Record<'verifier' | 'state' | 'nonce', string>

export const newRequest = (): Sent => ({ verifier: randomText(), state: randomText(), nonce: randomText() })

export const authorizationPath = (site: Site, { verifier, state, nonce }: Sent) => {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: site.client.id,
    redirect_uri: site.client.redirectUri,
    scope: site.scope,
    resource: site.resource,
    state,
    nonce,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  return `${site.paths.authorize}?${query}`
}

/** The page with the form for user and password, one redirect away. */
export const openPage = async (browser: Browser, site: Site): Promise<string> => (await begin(browser, site)).page

/** A sign-in up to the page with the form, and that page's address. */
export type Begun = { sent: Sent; path: string; page: string }

export const begin = async (browser: Browser, site: Site): Promise<Begun> => {
  const sent = newRequest()
  const { location = '' } = await browser.get(authorizationPath(site, sent))
  const path = pathOf(location, site)
  return { sent, path, page: (await browser.get(path)).body }
}

/** From the authorization request to the code; without a person by the session of the browser. */
export const authorize = async (browser: Browser, site: Site, person?: Person): Promise<Authorized> => {
  const sent = newRequest()
  return followed(browser, site, { sent, visit: await browser.get(authorizationPath(site, sent)) }, person)
}

/** On from an answer to the code. */
export const followed = async (
  browser: Browser,
  site: Site,
  { sent, visit: first }: { sent: Sent; visit: Visit },
  person?: Person,
): Promise<Authorized> => {
  const { verifier, state, nonce } = sent
  let visit = first
  for (let requests = 1; requests < 10; requests++) {
    const { status, location, body } = visit
    if (location?.startsWith(site.client.redirectUri)) {
      const answer = new URL(location).searchParams
      const code = answer.get('code')
      if (code === null || answer.get('state') !== state) throw new Error(`no code: ${location}`)
      return { code, verifier, nonce, requests }
    }
    if (status >= 300 && status < 400 && location !== undefined) visit = await browser.get(pathOf(location, site))
    else if (status === 200 && person !== undefined) visit = await submit(browser, body, site, person)
    else throw new Error(`no way on: ${status} ${location ?? ''}\n${body.slice(0, 2_000)}`)
  }
  throw new Error(`it goes round and round, to ${visit.location}`)
}

/** The code for tokens: status and body. One request. */
export const redeem = async (
  browser: Browser,
  site: Site,
  { code, verifier }: Pick<Authorized, 'code' | 'verifier'>,
): Promise<{ status: number; body: string }> =>
  browser.call(site.paths.token, {
    grant_type: 'authorization_code',
    client_id: site.client.id,
    redirect_uri: site.client.redirectUri,
    code,
    code_verifier: verifier,
    resource: site.resource,
  })

/** All of it. Throws unless there are an ID token, an access token and a refresh token in the end. */
export const signIn = async (browser: Browser, site: Site, person?: Person): Promise<{ requests: number }> => {
  const authorized = await authorize(browser, site, person)
  await redeemAll(browser, site, authorized)
  return { requests: authorized.requests + 1 }
}

/** Throws unless all three tokens are there. */
export const redeemAll = async (browser: Browser, site: Site, authorized: Authorized): Promise<void> => {
  const { status, body } = await redeem(browser, site, authorized)
  if (status !== 200 || !tokens.every((token) => body.includes(token))) throw new Error(`no tokens: ${status} ${body}`)
}

const tokens = ['"access_token"', '"id_token"', '"refresh_token"']

const randomText = (): string => randomBytes(32).toString('base64url')

const pathOf = (location: string, { origin }: Site): string => {
  const { pathname, search } = new URL(location, origin)
  return pathname + search
}

/** The form of the page that asks for a password, with its hidden fields and its first button. */
export const submit = (browser: Browser, page: string, site: Site, person: Person) => {
  const form = /<form\b[^>]*>(?:(?!<\/form>)[\s\S])*?type="?password[\s\S]*?<\/form>/i.exec(page)?.[0]
  if (form === undefined) throw new Error(`a page without a form for a password:\n${page.slice(0, 2_000)}`)
  return submitForm(browser, form, site, { identifier: person.identifier, password: person.password })
}

/** The form with the button of an identity provider, pressed. */
export const pressProvider = (browser: Browser, page: string, site: Site, connectorId: string) => {
  const choice = `provider:${connectorId}`
  const form = [...page.matchAll(/<form\b[\s\S]*?<\/form>/gi)]
    .map(([text]) => text)
    .find((text) => text.includes(choice))
  if (form === undefined) throw new Error(`a page without the provider ${connectorId}:\n${page.slice(0, 2_000)}`)
  return submitForm(browser, form, site, { choice })
}

const submitForm = (browser: Browser, form: string, site: Site, typed: Record<string, string>) => {
  const hidden = [...form.matchAll(/<input\b[^>]*type="?hidden[^>]*>/gi)].map(([tag]) => tag)
  const [button] = /<button\b[^>]*>/i.exec(form) ?? []
  const fields = [...hidden, ...(button === undefined ? [] : [button])].flatMap((tag) => {
    const name = attribute(tag, 'name')
    return name === undefined ? [] : [[name, attribute(tag, 'value') ?? '']]
  })
  return browser.post(pathOf(attribute(form, 'action') ?? '', site), {
    ...Object.fromEntries(fields),
    ...typed,
  })
}

const attribute = (tag: string, name: string): string | undefined =>
  new RegExp(`^<[^>]*?\\s${name}="([^"]*)"`, 'i').exec(tag)?.[1]?.replaceAll('&amp;', '&')
