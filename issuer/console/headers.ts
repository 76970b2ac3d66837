import { createHash } from 'node:crypto'
import { styles } from '../pages/styles.ts'

/** Everything comes from here, nothing is inline, and no script makes markup of text. */
const shellPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** Passkeys are made when an owner is; nothing else that a browser can do is needed. */
const permissionsPolicy = [
  'publickey-credentials-get=(self)',
  'publickey-credentials-create=(self)',
  'clipboard-write=(self)',
  ...['camera', 'clipboard-read', 'display-capture', 'geolocation', 'microphone', 'midi', 'payment', 'usb'].map(
    (feature) => `${feature}=()`,
  ),
].join(', ')

/** RFC 6797: two years, this host only. */
const strictTransportSecurity = 'max-age=63072000'

/** With every answer of the console, whatever it is. */
export const consoleHeaders = ({ secure }: { secure: boolean }): Readonly<Record<string, string>> => ({
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  ...(secure && { 'Strict-Transport-Security': strictTransportSecurity }),
})

/** With the shell besides. */
export const shellHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': shellPolicy,
  'Permissions-Policy': permissionsPolicy,
  'X-Frame-Options': 'DENY',
}

/** With a page that the console shows in a frame: it does nothing, and has the styles that it came with. */
export const previewHeaders = (styles: string): Readonly<Record<string, string>> => ({
  'Content-Security-Policy': [
    ...["default-src 'none'", 'sandbox', "img-src 'self' https: http:", `style-src '${styles}'`],
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'self'"],
  ].join('; '),
  'X-Frame-Options': 'SAMEORIGIN',
})

const noticeStyles = createHash('sha256').update(styles).digest('base64')

/** With pages that need nothing but the styles in them. */
export const noticeHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    ...["default-src 'none'", `style-src 'sha256-${noticeStyles}'`],
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ].join('; '),
  'X-Frame-Options': 'DENY',
}
