import type { ServerResponse } from 'node:http'
import { formPostPage, type Locale, sendPage } from '../pages/index.ts'
import type { AuthorizationResponse } from './authorization-response.ts'

/** RFC 9700 §4.2.4, §4.12: the answer holds a code, so nothing keeps it and nobody is told where it was. */
const headers = { 'Cache-Control': 'no-store', Pragma: 'no-cache', 'Referrer-Policy': 'no-referrer' }

/** Whatever was registered once, nothing but a URI gets into the header. */
const inHeader = (location: string): string => location.replace(/[^\x21-\x7e]/gu, encodeURIComponent)

/** RFC 9700 §4.12: 303, so that a form that was just posted is not posted on. */
export const redirectBrowser = (
  response: ServerResponse,
  location: string,
  { setCookies = [] }: { setCookies?: readonly string[] } = {},
): void => {
  for (const cookie of setCookies) response.appendHeader('Set-Cookie', cookie)
  response.writeHead(303, { ...headers, Location: inHeader(location), 'Content-Length': 0 }).end()
}

/** Sends the browser back to the client. */
export const sendAuthorizationResponse = (
  response: ServerResponse,
  answer: AuthorizationResponse,
  { setCookies = [], locale, secure }: { setCookies?: readonly string[]; locale?: Locale; secure?: boolean } = {},
): void => {
  if ('location' in answer) redirectBrowser(response, answer.location, { setCookies })
  else sendPage(response, 200, formPostPage({ ...answer.formPost, locale }), { setCookies, secure })
}
