import { type Browser, createBrowser, type Visit } from './browser.ts'
import type { Person } from './code-flow.ts'
import type { TestIssuer } from './issuer.ts'

/** People at their account pages, without a script. */
export interface AccountVisitor {
  browser: Browser
  /** A page, after signing in where that is asked for. */
  open(path: string): Promise<Visit>
  /** Makes the ten minutes in which changes are possible begin, as if a factor had been proven. */
  confirm(): Promise<void>
}

export const visitAccount = (issuer: TestIssuer, person: Person): AccountVisitor => {
  const browser = createBrowser(issuer.baseUrl)
  const open = async (path: string) => {
    const page = await browser.get(path)
    if (!page.url.includes('/sign-in/')) return page
    return browser.submit(page, { identifier: person.username, password: person.password, choice: 'sign_in' })
  }
  return {
    browser,
    open,
    async confirm() {
      await open('/account')
      await issuer.sql(
        `INSERT INTO proofs (id, user_id, kind, purpose, holder, verified_at, expires_at)
         SELECT substr(md5(random()::text), 1, 21), user_id, 'password', 'reauth', id, now(), now() + interval '10 minutes'
         FROM sessions WHERE user_id = $1 AND ended_at IS NULL ORDER BY created_at DESC LIMIT 1`,
        [person.id],
      )
    },
  }
}

/** The text of a page without its markup. */
export const textOf = ({ text }: Visit): string =>
  text
    .replace(/<head>[\s\S]*?<\/head>/, ' ')
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
