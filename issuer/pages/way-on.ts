import { type Html, html } from './html.ts'

// A path of ours, but no `//host`; the web; an application's own scheme, which has a dot (RFC 8252 §7.1). Browsers drop
// tabs and line breaks wherever they stand, so `/<tab>/host` would be another host.
const mayLead = /^(?!.*[\x00-\x20])(\/(?![/\\])|https?:\/\/|[a-z][a-z\d+-]*(\.[a-z\d+-]+)+:)/is

/** Where somebody goes on from a page that ends. Nothing when there is no address, or one that a page must not open. */
export const wayOnLink = (
  href: string | undefined,
  text: Html,
  { isQuiet = false }: { isQuiet?: boolean } = {},
): Html | undefined =>
  href !== undefined && mayLead.test(href)
    ? html`<p class="actions"><a class="button${isQuiet && ' quiet'}" href="${href}" rel="noreferrer">${text}</a></p>`
    : undefined
