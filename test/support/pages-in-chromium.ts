import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { startChromium } from './chromium.ts'
import { startTestSignIn, type TestClient, type TestSignIn } from './sign-in.ts'
import { startWebsite } from './website.ts'

/** The pages of signing in by themselves, in a real browser, with an application that only greets. */
export interface PagesInChromium {
  signIn: TestSignIn
  client: TestClient
  browser: Browser
  /** A browser of somebody's own. */
  open(options?: BrowserContextOptions): Promise<{ context: BrowserContext; page: Page }>
  /** Where a request begins. */
  authorizationUrl(parameters?: Record<string, unknown>): string
  close(): Promise<void>
}

export const atTheApplication = (url: URL): boolean => url.pathname === '/callback' && url.searchParams.has('code')

export const startPagesInChromium = async (
  options: Parameters<typeof startTestSignIn>[0] = {},
): Promise<PagesInChromium> => {
  // Passkeys belong to a name, which an address is not.
  const signIn = await startTestSignIn({ host: 'localhost', ...options })
  const shop = await startWebsite(() => ({ body: '<!doctype html><title>Shop</title><h1>Welcome</h1>' }))
  const client = await signIn.createClient({ redirectUris: [`${shop.url}/callback`] })
  const browser = await startChromium()
  return {
    ...{ signIn, client, browser },
    async open(contextOptions) {
      const context = await browser.newContext(contextOptions)
      return { context, page: await context.newPage() }
    },
    authorizationUrl(parameters = {}) {
      const request = { ...signIn.request(client), ...parameters }
      return `${signIn.url}/oidc/auth?request=${encodeURIComponent(JSON.stringify(request))}`
    },
    async close() {
      await browser.close()
      await shop.close()
      await signIn.close()
    },
  }
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * What is wrong with a page by WCAG 2.2 A and AA and good practice, as axe-core sees it: rule and place. `rules`: by
 * these alone.
 */
export const accessibilityProblems = async (page: Page, rules?: readonly string[]): Promise<string[]> => {
  // From here, because no page runs a script of others.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(axe)
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: rules }) }
  const violations = await page.evaluate<{ id: string; nodes: { html: string }[] }[]>(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`,
  )
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}
