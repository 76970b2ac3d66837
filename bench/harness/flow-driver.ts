import { type Browser, type Cookie, createBrowser } from './browser.ts'
import { answerCalls } from './calls.ts'
import { type Person, type Site, signIn } from './sign-in-flow.ts'

/**
 * Whole sign-ins one after the other: each connection is a browser, which begins the next when the last one has its
 * tokens (closed loop). What any of the answers lacks fails the round.
 */
export type Flows = {
  site: Site
  seconds: number
  connections: number
} & (
  | {
      /** They take turns; each sign-in is in a browser that nobody has used before. */
      people: Person[]
    }
  /** A signed-in browser for each connection. */
  | { browsers: Cookie[][] }
)

export type FlowResult = {
  flows: number
  seconds: number
  p50Ms: number
  p99Ms: number
  /** Of one flow. */
  requests: number
  /** CPU microseconds of the driver itself. */
  cpuMicros: number
}

const run = async (asked: Flows): Promise<FlowResult> => {
  const { site, seconds, connections } = asked
  const latencies: number[] = []
  let requests = 0
  let taken = 0
  const flow = (browser: Browser) => {
    if (!('people' in asked)) return signIn(browser, site)
    browser.clear()
    return signIn(browser, site, asked.people[taken++ % asked.people.length])
  }

  const cpuBefore = process.cpuUsage()
  const started = performance.now()
  const deadline = started + seconds * 1000
  const drive = async (number: number) => {
    const browser = createBrowser(site)
    if ('browsers' in asked) browser.clear(asked.browsers[number % asked.browsers.length])
    try {
      while (performance.now() < deadline) {
        const begun = performance.now()
        const done = await flow(browser)
        latencies.push(performance.now() - begun)
        requests += done.requests
      }
    } finally {
      browser.close()
    }
  }
  await Promise.all(Array.from({ length: connections }, (_, number) => drive(number)))
  const { user, system } = process.cpuUsage(cpuBefore)

  latencies.sort((a, b) => a - b)
  const percentile = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]
  return {
    flows: latencies.length,
    seconds: (performance.now() - started) / 1000,
    p50Ms: percentile(0.5) ?? Number.NaN,
    p99Ms: percentile(0.99) ?? Number.NaN,
    requests: requests / latencies.length,
    cpuMicros: user + system,
  }
}

answerCalls({ start: () => {}, run })
