import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { sha256 } from '../../platform/secret.ts'
import { accountStyles } from './account-styles.ts'
import { captchaScript } from './captcha-script.ts'
import { passkeyScript } from './passkey-script.ts'
import { styles } from './styles.ts'

/** A file of the pages. Its address has the digest of its content, so it never changes. */
export interface Asset {
  path: string
  type: string
  content: Buffer
}

const asset = (name: string, extension: string, type: string, text: string): Asset => {
  const content = Buffer.from(text)
  return { path: `/assets/${name}.${sha256(content).toString('hex').slice(0, 16)}.${extension}`, type, content }
}

const mark =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#3b4fd6"/>' +
  '<g fill="#fff"><circle cx="12" cy="16" r="7" opacity=".6"/><circle cx="20" cy="16" r="7"/></g></svg>'

export const stylesheet = asset('pages', 'css', 'text/css; charset=utf-8', styles)
/** Beside the other one, on the account pages. */
export const accountStylesheet = asset('account', 'css', 'text/css; charset=utf-8', accountStyles)
export const icon = asset('icon', 'svg', 'image/svg+xml', mark)
export const script = asset('passkeys', 'js', 'text/javascript; charset=utf-8', passkeyScript)

/** With its digest as elements name it (Subresource Integrity). */
const withIntegrity = (name: string, text: string): Asset & { integrity: string } => {
  const made = asset(name, 'js', 'text/javascript; charset=utf-8', text)
  return { ...made, integrity: `sha256-${createHash('sha256').update(made.content).digest('base64')}` }
}

export const captchaAsset = withIntegrity('captcha', captchaScript)

const assets = new Map<string, Asset>(
  [stylesheet, accountStylesheet, icon, captchaAsset, script].map((one) => [one.path, one]),
)

/** By the path of a request, without its query. */
export const findAsset = (path: string): Asset | undefined => assets.get(path)

export interface SendAssetOptions {
  /** The address may lead to something else later. */
  isMutable?: boolean | undefined
  /** Pages of other origins may show it. */
  isShared?: boolean | undefined
}

/** Answers GET and HEAD. */
export const sendAsset = (
  response: ServerResponse,
  { type, content }: Pick<Asset, 'type' | 'content'>,
  { isMutable = false, isShared = false }: SendAssetOptions = {},
): void => {
  response.writeHead(200, {
    'Content-Type': type,
    'Content-Length': content.length,
    'Cache-Control': isMutable ? 'no-store' : 'public, max-age=31536000, immutable',
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Resource-Policy': isShared ? 'cross-origin' : 'same-origin',
    // Opened by itself, an SVG is a document: it runs nothing, loads nothing, and belongs to no origin.
    'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox",
  })
  response.end(content)
}
