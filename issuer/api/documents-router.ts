import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import express, { type RequestHandler, type Router } from 'express'
import { asyncApiDocument } from '../../events/documents.ts'
import { sha256 } from '../../platform/secret.ts'
import { problem } from '../base/errors/problems.ts'
import type { ManagementRoute, RouteFor } from '../base/route.ts'
import { accountDocument } from './openapi/account.ts'
import { experienceDocument } from './openapi/experience.ts'
import { openApiDocument } from './openapi.ts'

/**
 * What `/api` answers without an access token: that it runs, what it offers (OpenAPI, AsyncAPI), and a page to read
 * that. None of it depends on anything but the code, so it is made once and cached by whoever likes.
 */
export const createDocumentsRouter = (options: {
  routes: readonly ManagementRoute[]
  accountRoutes: readonly RouteFor<'account'>[]
  baseUrl: string
}): Router => {
  const router = express.Router({ caseSensitive: true, strict: true })
  const answers: Record<string, RequestHandler> = {
    '/status': (_request, response) => void response.status(204).end(),
    '/openapi.json': sendDocument('application/json', () => Buffer.from(JSON.stringify(openApiDocument(options)))),
    '/experience.openapi.json': sendDocument('application/json', () =>
      Buffer.from(JSON.stringify(experienceDocument(options))),
    ),
    '/account.openapi.json': sendDocument('application/json', () =>
      Buffer.from(JSON.stringify(accountDocument({ ...options, routes: options.accountRoutes }))),
    ),
    '/asyncapi.json': sendDocument('application/json', () => Buffer.from(JSON.stringify(asyncApiDocument()))),
    '/docs': withPolicy(sendDocument('text/html', () => Buffer.from(page))),
    '/docs/start.js': sendDocument('text/javascript', () => Buffer.from(start)),
    '/docs/swagger-ui.css': sendDocument('text/css', () => viewerFile('swagger-ui.css')),
    '/docs/swagger-ui-bundle.js': sendDocument('text/javascript', () => viewerFile('swagger-ui-bundle.js')),
  }
  for (const [path, answer] of Object.entries(answers)) router.route(path).get(answer).all(refuseMethod)
  return router
}

const refuseMethod: RequestHandler = () => {
  throw problem('guard.method_not_allowed', { headers: { Allow: 'GET, HEAD' } })
}

/** Five minutes; then one conditional request. */
const caching = 'public, max-age=300'

/** What stays the same while the process runs; made when it is first asked for. */
const sendDocument = (type: string, make: () => Buffer): RequestHandler => {
  let made: { etag: string; bytes: Buffer } | undefined
  return (request, response) => {
    if (made === undefined) {
      const bytes = make()
      made = { bytes, etag: `"${sha256(bytes).toString('base64url').slice(0, 22)}"` }
    }
    response.set({
      'Content-Type': `${type}; charset=utf-8`,
      'Cache-Control': caching,
      'X-Content-Type-Options': 'nosniff',
      ETag: made.etag,
      // Nothing here is secret; tools that read it may run in a page.
      'Access-Control-Allow-Origin': '*',
    })
    // `fresh` compares If-None-Match (RFC 9110 §13.1.2).
    if (request.fresh) response.status(304).end()
    else response.send(made.bytes)
  }
}

/** Swagger UI, as its package has it; whoever installs only what is needed to run does without the page. */
const viewer = 'swagger-ui-dist'

const viewerFile = (file: string): Buffer => {
  try {
    return readFileSync(createRequire(import.meta.url).resolve(`${viewer}/${file}`))
  } catch (cause) {
    throw problem('guard.not_found', { detail: `The page needs the package ${viewer}: install it.`, cause })
  }
}

// Nothing inline, nothing from another host, and nobody frames it.
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const withPolicy =
  (send: RequestHandler): RequestHandler =>
  (request, response, next) => {
    response.set({ 'Content-Security-Policy': contentSecurityPolicy, 'Referrer-Policy': 'no-referrer' })
    return send(request, response, next)
  }

// Addresses are relative, so that the page also works behind a proxy that serves it elsewhere.
const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Surrogate API</title>
    <link rel="stylesheet" href="docs/swagger-ui.css">
    <link rel="icon" href="data:,">
  </head>
  <body>
    <div id="reference"><noscript>The documents themselves are <a href="openapi.json">openapi.json</a>,
      <a href="account.openapi.json">account.openapi.json</a> and
      <a href="experience.openapi.json">experience.openapi.json</a>.</noscript></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`

// `?account` is the Account API, `?experience` the Experience API.
// To read only: no page asks for a client secret, and none is sent to a validator elsewhere.
const start = `SwaggerUIBundle({
  url: { '?account': 'account.openapi.json', '?experience': 'experience.openapi.json' }[location.search] ?? 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'none',
  filter: true,
  supportedSubmitMethods: [],
  validatorUrl: null,
})
`
