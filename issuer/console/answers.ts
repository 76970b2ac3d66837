import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ConsoleFile } from './files.ts'
import { noticeHeaders } from './headers.ts'
import { noticePage } from './notice-page.ts'

/** What the console answers with: files of its page, JSON, and pages that say why there is nothing else. */

export const sendFile = (
  { method, headers }: IncomingMessage,
  response: ServerResponse,
  file: ConsoleFile,
  more = {},
) => {
  const all = { ...file.headers, ...more }
  if (headers['if-none-match'] !== undefined && headers['if-none-match'] === file.headers['ETag'])
    return void response.writeHead(304, all).end()
  response.writeHead(200, { ...all, 'Content-Length': file.content.length })
  response.end(method === 'HEAD' ? undefined : file.content)
}

/** A page that says something and leads on. */
export const sendNotice = (response: ServerResponse, name: keyof typeof notices) => {
  const { status, title, sentence, links }: Notice = notices[name]
  const content = noticePage(title, sentence, links)
  const type = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': Buffer.byteLength(content) }
  response.writeHead(status, { ...noticeHeaders, ...type, 'Cache-Control': 'no-store' })
  response.end(response.req.method === 'HEAD' ? undefined : content)
}

/** What is in it is somebody's. */
export const sendJson = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) => {
  const content = JSON.stringify(body)
  const type = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(content) }
  response.writeHead(status, { ...headers, ...type, 'Cache-Control': 'no-store' })
  response.end(content)
}

const notices = {
  unknown: {
    status: 400,
    title: 'This sign-in cannot go on',
    sentence: 'It was not begun in this browser, or it took longer than ten minutes.',
    links: [{ href: '/console/sign-in', text: 'Sign in again' }],
  },
  refused: {
    status: 403,
    title: 'You are not signed in to the console',
    sentence: 'The sign-in was given up or refused.',
    links: [{ href: '/console/sign-in', text: 'Try again' }],
  },
  no_role: {
    status: 403,
    title: 'This account has no role in the console',
    sentence: 'Ask an owner of the console for a role, or for an invitation.',
    links: [{ href: '/console/sign-in?as=another', text: 'Sign in as somebody else' }],
  },
  signed_out: {
    status: 200,
    title: 'You are signed out',
    sentence: 'Of the console, and of all that you had signed in to in this browser.',
    links: [{ href: '/console/sign-in', text: 'Sign in again' }],
  },
  not_built: {
    status: 503,
    title: 'The console was not built',
    sentence: 'Run "npm run build", or "npm start", which builds it, and start the issuer again. The API is served.',
    links: [],
  },
} as const satisfies Record<string, Notice>

interface Notice {
  status: number
  title: string
  sentence: string
  links: readonly { href: string; text: string }[]
}
