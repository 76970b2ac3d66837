import { setPriority } from 'node:os'
import { createBrowser } from './browser.ts'
import { answerCalls } from './calls.ts'
import { type Begun, begin, followed, type Person, redeemAll, type Site, submit } from './sign-in-flow.ts'

/** Many people who send their passwords in one moment, each in a browser of their own at an address of their own. */
export type Burst = { site: Site; people: Person[] }

export type Answered = {
  ms: number
  /** `signed in`, or the status of what came instead. */
  outcome: string
  /** Of a refusal. */
  retryAfter?: string | undefined
}

type Waiting = { browser: ReturnType<typeof createBrowser>; begun: Begun; person: Person }

const failed = ({ message }: Error): Answered => ({ ms: 0, outcome: message.slice(0, 200) })

/** Pages that are opened at a time. */
const opened = 8

let site: Site
let waiting: Waiting[] = []
/** Who did not get as far as a page. */
let unopened: Answered[] = []
let bursts = 0

const addressOf = (number: number) => `10.${bursts}.${number >> 8}.${number & 255}`

const prepare = async (burst: Burst): Promise<void> => {
  site = burst.site
  waiting = []
  unopened = []
  bursts++
  const left = burst.people.entries()
  const open = async () => {
    for (const [number, person] of left) {
      const browser = createBrowser({ ...site, address: addressOf(number) })
      await begin(browser, site).then(
        (begun) => waiting.push({ browser, begun, person }),
        (error: Error) => unopened.push(failed(error)),
      )
    }
  }
  await Promise.all(Array.from({ length: opened }, open))
}

const signIn = async ({ browser, begun: { sent, page }, person }: Waiting): Promise<Answered> => {
  const started = performance.now()
  const visit = await submit(browser, page, site, person)
  const { status, retryAfter } = visit
  if (status >= 400) return { ms: performance.now() - started, outcome: String(status), retryAfter }
  await redeemAll(browser, site, await followed(browser, site, { sent, visit }))
  return { ms: performance.now() - started, outcome: 'signed in' }
}

const run = async (): Promise<Answered[]> => {
  const answers = await Promise.all(waiting.map((one) => signIn(one).catch(failed)))
  for (const { browser } of waiting) browser.close()
  return [...unopened, ...answers]
}

// These people have machines of their own: what they take of this one is not to hold up what is measured.
setPriority(10)
answerCalls({ start: () => {}, prepare, run })
