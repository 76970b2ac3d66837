import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { buildConsole } from '../../bin/build/console.ts'
import { consoleRoles } from '../../issuer/base/console-roles.ts'
import type { Gateway } from '../../issuer/console/gateways/gateways.ts'
import { launchChromium } from '../../test/support/chromium.ts'
import type { Connection } from '../harness/database-store.ts'
import { type Cpu, underTest } from '../harness/process.ts'
import type { Stage } from '../harness/stage.ts'
import { managementToken } from './management.ts'
import { manager } from './sign-in-world.ts'

/** The console on an issuer, and a Chromium in which an owner has signed in. */
export interface ConsoleWorld {
  /** What browsers call it: the address of its first page, without a slash behind. */
  url: string
  /** Where its files are, as the build leaves them. */
  folder: string
  connection: Connection
  /** A tab in a browser of its own, with nothing in its cache. Closed by `close()` of its context. */
  open: () => Promise<Page>
  /** The Management API, as an application that holds all of it; answers the body. */
  api: (method: string, path: string, body?: object) => Promise<unknown>
}

/** On a database of ours, whatever is in it. */
export const startConsoleWorld = async (
  stage: Stage,
  connection: Connection,
  { gateways = [], cpu = underTest }: { gateways?: readonly Gateway[]; cpu?: Cpu } = {},
): Promise<ConsoleWorld> => {
  const folder = await buildConsole()
  if (folder === undefined) throw new Error('there is no Vite to build the console with')
  const server = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), cpu, {
    connection,
    bootstrap: manager,
    consoleFolder: folder,
    consoleGateways: gateways,
  })
  const origin = `http://localhost:${server.port}`
  const token = await managementToken(server, manager)
  const api = async (method: string, path: string, body?: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${origin}/api${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  const url = `${origin}/console`
  const browser = await launchChromium()
  stage.onStop(() => browser.close())
  const signedIn = await signIn(browser, url, await createOwner(api))
  const open = async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, storageState: signedIn })
    return context.newPage()
  }
  return { url, folder, connection, open, api }
}

const createOwner = async (api: ConsoleWorld['api']) => {
  const person = { username: 'bench_owner', password: randomBytes(12).toString('hex') }
  const { id } = (await api('POST', '/users', { ...person, name: 'Ada Lovelace' })) as { id: string }
  await api('POST', `/users/${id}/roles`, { roleIds: [consoleRoles.owner.id] })
  return person
}

/** What a browser keeps of it. */
const signIn = async (
  browser: Browser,
  url: string,
  { username, password }: { username: string; password: string },
) => {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(`${url}/`)
  await page.locator('[name=identifier]').fill(username)
  await page.locator('[name=password]').fill(password)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${url}/`)
  const state = await context.storageState()
  await context.close()
  return state
}

interface Answered {
  path: string
  status: number
}

/** What a tab asks for; `quiet` when it has asked for nothing and got nothing for a while, and shows something. */
export const watchRequests = (tab: Page): { answers: readonly Answered[]; quiet: () => Promise<void> } => {
  const answers: Answered[] = []
  let last = performance.now()
  let open = 0
  const count = (by: number) => () => {
    open += by
    last = performance.now()
  }
  tab.on('request', count(1))
  tab.on('requestfinished', count(-1))
  tab.on('requestfailed', count(-1))
  tab.on('response', (response) => {
    answers.push({ path: new URL(response.url()).pathname, status: response.status() })
  })
  const quiet = async () => {
    last = performance.now()
    // A feed stays open for longer than anybody waits.
    const isQuiet = () => performance.now() - last > (open === 0 ? quietMs : 10 * quietMs)
    while (!isQuiet()) await setTimeout(quietMs / 10)
    await tab.locator('h1').waitFor()
  }
  return { answers, quiet }
}

const quietMs = 300
