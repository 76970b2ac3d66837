import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import { consoleFolder } from '../../bin/cli/console-folder.ts'
import type { ConsoleRoleName } from '../../issuer/base/console-roles.ts'
import { startChromium } from './chromium.ts'
import type { Person } from './code-flow.ts'
import { startTestConsole, type TestConsole } from './console.ts'
import type { TestIssuerOptions } from './issuer.ts'
import { accessibilityProblems } from './pages-in-chromium.ts'

/** The console as it is built, on a real issuer, in a real browser. */
export interface ConsoleInChromium {
  home: TestConsole
  browser: Browser
  /** Somebody who has signed in with these roles, on the page at `path` below `/console`. */
  signIn(path: string, options?: SignInOptions): Promise<ConsoleVisit>
  /** A browser of its own, watched. */
  open(options?: BrowserContextOptions): Promise<ConsoleVisit>
  close(): Promise<void>
}

export interface SignInOptions extends BrowserContextOptions {
  /** Default: an owner. */
  roles?: readonly ConsoleRoleName[]
  person?: Person
}

export interface ConsoleVisit {
  context: BrowserContext
  page: Page
  goTo(path: string): Promise<void>
  /** Nothing went wrong that a person would not see, and everybody can use what is there. Closes the browser. */
  end(): Promise<void>
  /** The same for the page as it is now. */
  expectUsable(): Promise<void>
}

/** All that another colour scheme can break: it changes colours alone, by `light-dark()`. */
const rulesAboutColours = ['color-contrast', 'link-in-text-block']

/** Answers that pages deal with are told by the browser as errors too. */
const expected = /Failed to load resource: the server responded with a status of 4(00|01|03|04|12|22)/

export const startConsoleInChromium = async (options: TestIssuerOptions = {}): Promise<ConsoleInChromium> => {
  const folder = await consoleFolder()
  // Passkeys belong to a name, which an address is not; and the origin is the issuer's.
  const config = { host: 'localhost', ...options.config }
  const home = await startTestConsole({ ...options, consoleFolder: folder!, config })
  const browser = await startChromium()
  const { baseUrl } = home.issuer

  const open = visitsOf(browser, baseUrl)

  return {
    home,
    browser,
    open,
    async signIn(path, { roles, person, ...options } = {}) {
      const visit = await open(options)
      // The pages in between have tests of their own.
      const { cookies } = await home.browserOf(person ?? (await home.createMember(...(roles ?? ['owner' as const]))))
      await visit.context.addCookies([...cookies].map(([name, value]) => ({ name, value, url: baseUrl })))
      await visit.goTo(path)
      return visit
    },
    async close() {
      await browser.close()
      await home.close()
    },
  }
}

/** On the sign-in page that the console leads to. */
export const signInOn = async (page: Page, person: Person): Promise<void> => {
  await page.locator('[name=identifier]').fill(person.username)
  await page.locator('[name=password]').fill(person.password)
  await page.keyboard.press('Enter')
}

/** Browsers of their own at the console of this origin, watched. */
export const visitsOf =
  (browser: Browser, baseUrl: string) =>
  async (options: BrowserContextOptions = {}): Promise<ConsoleVisit> => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: baseUrl })
    const page = await context.newPage()
    const wrong: string[] = []
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type()) && !expected.test(message.text())) wrong.push(message.text())
    })
    page.on('pageerror', (error) => wrong.push(error.message))
    page.on('request', (request) => {
      if (new URL(request.url()).origin !== baseUrl) wrong.push(`a request to ${request.url()}`)
    })
    const expectUsable = async () => {
      await page.locator('h1').waitFor()
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        // Colours are those of the theme when nothing moves any more.
        await page.evaluate('Promise.allSettled(document.getAnimations().map(({ finished }) => finished))')
        await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
        const rules = colorScheme === 'dark' ? rulesAboutColours : undefined
        // On a busy machine Chromium goes on telling old colours of what stands deep: what stays is what counts.
        await expect
          .poll(() => accessibilityProblems(page, rules), { message: `${page.url()} ${colorScheme}`, timeout: 15_000 })
          .toEqual([])
      }
      expect(wrong).toEqual([])
    }
    return {
      context,
      page,
      goTo: async (path) => void (await page.goto(`${baseUrl}/console${path}`)),
      expectUsable,
      async end() {
        await expectUsable()
        await context.close()
      },
    }
  }
