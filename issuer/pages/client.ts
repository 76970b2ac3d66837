import { foreignName, initialOf } from './foreign-text.ts'
import { type Html, html } from './html.ts'

/** The application that somebody signs in to. */
export interface PageClient {
  name: string
  logoUri?: string | undefined
}

// What may stand in a source list (CSP §2.3.1): a URL allows `;` and `*` in a host.
const plainHost = /^(\[[\da-f:]+\]|[a-z\d.-]+)(:\d+)?$/

/** Undefined when a picture is not shown: only from https, or from the developer's own machine. */
export const pictureOrigin = (address: string | undefined): string | undefined => {
  const url = address === undefined ? null : URL.parse(address)
  if (url === null || !plainHost.test(url.host) || url.username !== '' || url.password !== '') return undefined
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLocal) ? url.origin : undefined
}

export const logoOf = (client: PageClient | undefined): { url: string; origin: string } | undefined => {
  const origin = pictureOrigin(client?.logoUri)
  return origin === undefined ? undefined : { url: new URL(client?.logoUri ?? '').href, origin }
}

/** Its logo, or its first letter, and its name: the top of a page. */
export const clientHeader = (client: PageClient): Html => {
  const logo = logoOf(client)
  const picture = logo
    ? html`<img class="logo" src="${logo.url}" alt="" width="44" height="44">`
    : html`<span class="logo letter" aria-hidden="true">${initialOf(client.name)}</span>`
  return html`<div class="client">${picture}<span class="name">${foreignName(client.name)}</span></div>`
}
