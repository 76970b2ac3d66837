import type { ServerResponse } from 'node:http'
import type { Branding } from './branding.ts'
import type { Page } from './page.ts'

// Passkeys are asked for and made by our own pages; nothing else that a browser can do is.
const permissionsPolicy = [
  'publickey-credentials-get=(self)',
  'publickey-credentials-create=(self)',
  ...[
    'accelerometer',
    'autoplay',
    'browsing-topics',
    'camera',
    'clipboard-read',
    'clipboard-write',
    'display-capture',
    'encrypted-media',
    'fullscreen',
    'geolocation',
    'gyroscope',
    'hid',
    'identity-credentials-get',
    'idle-detection',
    'local-fonts',
    'magnetometer',
    'microphone',
    'midi',
    'otp-credentials',
    'payment',
    'picture-in-picture',
    'screen-wake-lock',
    'serial',
    'storage-access',
    'usb',
    'window-management',
    'xr-spatial-tracking',
  ].map((feature) => `${feature}=()`),
].join(', ')

/** With every page, error pages too. */
const headersOfEveryPage = {
  'Content-Type': 'text/html; charset=utf-8',
  // It may name a person, and Back must not show it to the next one.
  'Cache-Control': 'no-store',
  Pragma: 'no-cache',
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': permissionsPolicy,
}

/** RFC 6797: two years, this host only. Neighbours may not have https. */
const strictTransportSecurity = 'max-age=63072000'

export interface SendPageOptions {
  /** Beside those of every page, never instead of them. */
  headers?: Readonly<Record<string, string>> | undefined
  setCookies?: readonly string[] | undefined
  /** The issuer is reached over https. */
  secure?: boolean | undefined
  /** What the operator puts on it. */
  branding?: Branding | undefined
}

/** Answers with a page; a HEAD request gets its headers only. */
export const sendPage = (
  response: ServerResponse,
  status: number,
  page: Page,
  { headers: further = {}, setCookies = [], secure = false, branding }: SendPageOptions = {},
): void => {
  const { content, headers } = branding ? page.branded(branding) : page
  const all: Readonly<Record<string, string>> = {
    ...further,
    ...headersOfEveryPage,
    ...headers,
    ...(secure ? { 'Strict-Transport-Security': strictTransportSecurity } : {}),
  }
  for (const [name, value] of Object.entries(all)) response.setHeader(name, value)
  for (const cookie of setCookies) response.appendHeader('Set-Cookie', cookie)
  response.writeHead(status, { 'Content-Length': Buffer.byteLength(content) })
  response.end(content)
}
