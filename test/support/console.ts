import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { type ConsoleRoleName, consoleRoles } from '../../issuer/base/console-roles.ts'
import type { Browser, Visit } from './browser.ts'
import { type CodeFlow, createCodeFlow, type Person } from './code-flow.ts'
import { type Answer, startTestIssuer, type TestIssuer, type TestIssuerOptions } from './issuer.ts'

export const consoleShell =
  '<!doctype html><title>Console</title><link rel="icon" href="data:,"><script type="module" src="/console/assets/main-1.js"></script>'
/** It shows in the title whom it is used by. */
export const consoleScript = `// ${'the console '.repeat(50)}
const answer = await fetch('/console/session')
document.title = answer.ok ? (await answer.json()).user.id : 'signed out'
`

/** An issuer with the console on it, without its pages: a shell and a script stand for them. */
export interface TestConsole {
  issuer: TestIssuer
  flow: CodeFlow
  /** Somebody with these roles of the console. */
  createMember(...roles: ConsoleRoleName[]): Promise<Person>
  giveRole(userId: string, role: ConsoleRoleName): Promise<void>
  /** Signs in to the console: the last answer, which is its shell. */
  signIn(browser: Browser, person: Person, query?: string): Promise<Visit>
  /** A browser of somebody who has signed in. */
  browserOf(person: Person): Promise<Browser>
  /** What the page sends. `instance` counts from 0. */
  call(browser: Browser, method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  close(): Promise<void>
}

interface CallOptions {
  headers?: Record<string, string>
  instance?: number
}

export const consoleCookie = 'surrogate-console'

export const startTestConsole = async (options: TestIssuerOptions = {}): Promise<TestConsole> => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-console-'))
  await mkdir(join(folder, 'assets'))
  await writeFile(join(folder, 'index.html'), consoleShell)
  await writeFile(join(folder, 'assets/main-1.js'), consoleScript)
  await writeFile(join(folder, 'assets/main-1.js.br'), brotliCompressSync(consoleScript))
  await writeFile(join(folder, 'secret.txt'), 'not served')
  const issuer = await startTestIssuer({ consoleFolder: folder, ...options })
  const flow = createCodeFlow(issuer)

  const giveRole: TestConsole['giveRole'] = async (userId, role) => {
    await issuer.sql('INSERT INTO user_roles (user_id, role_id) VALUES ($1, $2)', [userId, consoleRoles[role].id])
  }

  const signIn: TestConsole['signIn'] = async (browser, person, query = '') => {
    const page = await browser.get(`${issuer.baseUrl}/console/sign-in${query}`)
    return page.forms.length === 0 ? page : browser.submit(page, flow.credentials(person))
  }

  return {
    issuer,
    flow,
    giveRole,
    signIn,
    async createMember(...roles) {
      const person = await flow.createPerson()
      for (const role of roles) await giveRole(person.id, role)
      return person
    },
    async browserOf(person) {
      const browser = flow.browser()
      const shell = await signIn(browser, person)
      if (!browser.cookies.has(consoleCookie)) throw new Error(`not signed in: ${shell.status} ${shell.text}`)
      return browser
    },
    async call(browser, method, path, body, { headers = {}, instance = 0 } = {}) {
      const reads = method === 'GET'
      const answer = await browser.send(`${issuer.urls[instance]}/console${path}`, {
        method,
        headers: { 'sec-fetch-site': 'same-origin', ...(!reads && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const isJson = /[/+]json\b/.test(answer.headers.get('content-type') ?? '') && answer.text !== ''
      return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(answer.text) : answer.text }
    },
    async close() {
      await issuer.close()
      await rm(folder, { recursive: true })
    },
  }
}
