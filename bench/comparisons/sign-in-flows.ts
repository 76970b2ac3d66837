import { type Cookie, createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import type { FlowResult, Flows } from '../harness/flow-driver.ts'
import { type Settings, type Spread, spread } from '../harness/measure.ts'
import { ofHashing } from '../harness/password-cost.ts'
import { people } from '../harness/people.ts'
import { type BenchProcess, support } from '../harness/process.ts'
import { range } from '../harness/report.ts'
import { signIn } from '../harness/sign-in-flow.ts'
import type { Stage } from '../harness/stage.ts'
import { type Issuer, password, personOf, verdict } from './sign-in-world.ts'

/** Where people sign in, whatever it decides about them. */
export type SigningIn = Pick<Issuer, 'name' | 'server' | 'site'>

/**
 * V8 compiles well only what it has seen often, and Argon2 lets few sign-ins through: what one costs falls until about a
 * thousand, and does not after that.
 */
export const warmUpSignIns = 1_500

/** Argon2 works for two at a time, so that more of them would only wait. */
const passwordConnections = 4

interface FlowSample {
  cpuMicros: number
  /** Of that, the thread that JavaScript runs in. */
  mainMicros: number
  /** Of that, the threads in which passwords are hashed. */
  poolMicros: number
  result: FlowResult
}

interface FlowRound {
  passwordMicros: number
  password: FlowSample
  session: FlowSample
}

/** Whole sign-ins, by password and by the session of the browser. */
export const measureFlows = async (
  stage: Stage,
  settings: Settings,
  progress: (line: string) => void,
  { peer, ours, floor, digest }: Record<'peer' | 'ours' | 'floor', SigningIn> & { digest: string },
): Promise<Page> => {
  const { process: driver } = await stage.start(new URL('../harness/flow-driver.ts', import.meta.url), support)
  const contestants: { issuer: SigningIn; browsers: Cookie[][]; rounds: FlowRound[] }[] = []
  for (const issuer of [peer, ours, floor]) {
    progress(`warm-up: ${issuer.name}`)
    const browsers = await signedInBrowsers(issuer, settings.connections)
    for (let signIns = 0; signIns < warmUpSignIns; ) {
      const { password } = await flowRound({ issuer, browsers, driver, digest }, settings)
      signIns += password.result.flows
    }
    contestants.push({ issuer, browsers, rounds: [] })
  }
  for (let number = 1; number <= settings.rounds; number++) {
    for (const { issuer, browsers, rounds } of contestants) {
      progress(`round ${number}/${settings.rounds}: ${issuer.name}, sign-in`)
      rounds.push(await flowRound({ issuer, browsers, driver, digest }, settings))
    }
  }
  return flowPage(contestants.map(({ issuer: { name }, rounds }) => ({ name, rounds })))
}

const everybody = Array.from({ length: people.subjects }, (_, index) => personOf(index + 1))

const signedInBrowsers = async ({ site }: SigningIn, count: number): Promise<Cookie[][]> => {
  const browsers: Cookie[][] = []
  const browser = createBrowser(site)
  for (let number = 1; number <= count; number++) {
    browser.clear()
    await signIn(browser, site, personOf(number))
    browsers.push(browser.cookies())
  }
  browser.close()
  return browsers
}

type FlowContestant = { issuer: SigningIn; browsers: Cookie[][]; driver: BenchProcess; digest: string }

const flowRound = async (
  { issuer, browsers, driver, digest }: FlowContestant,
  { seconds, connections }: Settings,
): Promise<FlowRound> => {
  const { site, server } = issuer
  const sample = async (flows: Flows): Promise<FlowSample> => {
    const cpu = () =>
      Promise.all((['cpu', 'mainCpu', 'poolCpu'] as const).map((name) => server.process.call<number>(name)))
    const before = await cpu()
    const result = await driver.call<FlowResult>('run', flows).catch((error: Error) => {
      throw new Error(`${issuer.name}, sign-in: ${error.message}`)
    })
    const after = await cpu()
    const [cpuMicros, mainMicros, poolMicros] = after.map((micros, index) => (micros - before[index]!) / result.flows)
    return { cpuMicros: cpuMicros!, mainMicros: mainMicros!, poolMicros: poolMicros!, result }
  }
  return {
    passwordMicros: await server.process.call<number>('passwordMicros', {
      password,
      digest,
      times: Math.ceil(seconds * 20),
    }),
    password: await sample({ site, seconds, connections: passwordConnections, people: everybody }),
    session: await sample({ site, seconds, connections, browsers }),
  }
}

/** In ms: what those threads do beyond what they do in a sign-in without a password is hashing. */
const hashing = ({ password, session }: FlowRound): number => (password.poolMicros - session.poolMicros) / 1000
const besideHashing = (round: FlowRound): number => round.password.cpuMicros / 1000 - hashing(round)

const bars = { besideHashingMs: 2, requests: 4, sessionRatio: 2.5 }
/** A whole sign-in, as a multiple of what Argon2 costs by itself. */
const mostOfHashing = 1 + ofHashing(bars.besideHashingMs)

const rateOf = ({ flows, seconds }: FlowResult): number => flows / seconds

const flowPage = (measured: { name: string; rounds: FlowRound[] }[]): Page => {
  const over = ({ rounds }: { rounds: FlowRound[] }, pick: (round: FlowRound) => number): Spread =>
    spread(rounds.map(pick))
  const rates = (kind: 'password' | 'session') => (of: { rounds: FlowRound[] }) => [
    range(
      over(of, (round) => rateOf(round[kind].result)),
      0,
    ),
    over(of, (round) => round[kind].result.p50Ms).median.toFixed(1),
    over(of, (round) => round[kind].result.p99Ms).median.toFixed(1),
    over(of, (round) => round[kind].result.requests).median.toFixed(0),
    over(of, (round) => round[kind].result.cpuMicros / round[kind].result.flows).median.toFixed(0),
  ]
  const rateHeads = ['sign-ins/s', 'p50 ms', 'p99 ms', 'requests', 'load µs']
  type Measured = (typeof measured)[number]
  const [peer, ours, floor] = measured as [Measured, Measured, Measured]
  const ratio = spread(
    ours.rounds.map(({ session }, round) => peer.rounds[round]!.session.cpuMicros / session.cpuMicros),
  )
  const beside = over(ours, besideHashing)
  const besideRatio = spread(
    ours.rounds.map((round, index) => besideHashing(peer.rounds[index]!) / besideHashing(round)),
  )
  const requests = over(ours, ({ password }) => password.result.requests)
  const timesHashing = (of: Measured) => over(of, ({ password, passwordMicros }) => password.cpuMicros / passwordMicros)
  const ofFloor = spread(
    ours.rounds.map((round, index) => rateOf(round.password.result) / rateOf(floor.rounds[index]!.password.result)),
  )
  return {
    tables: [
      [
        ['sign-in by session', 'CPU µs', ...rateHeads],
        ...measured.map((of) => [
          of.name,
          range(
            over(of, ({ session }) => session.cpuMicros),
            0,
          ),
          ...rates('session')(of),
        ]),
      ],
      [
        [
          ...['sign-in by password', 'CPU ms', 'of that Argon2', 'beside Argon2', 'main thread', 'Argon2 by itself'],
          ...rateHeads,
        ],
        ...measured.map((of) => [
          of.name,
          range(
            over(of, ({ password }) => password.cpuMicros / 1000),
            2,
          ),
          range(over(of, hashing), 2),
          range(over(of, besideHashing), 2),
          range(
            over(of, ({ password }) => password.mainMicros / 1000),
            2,
          ),
          range(
            over(of, ({ passwordMicros }) => passwordMicros / 1000),
            2,
          ),
          ...rates('password')(of),
        ]),
      ],
      [
        ['', 'measured', 'bar', ''],
        [
          'oidc-provider / Surrogate, sign-in by session',
          `${range(ratio, 2)} ×`,
          `≥ ${bars.sessionRatio} ×`,
          verdict(ratio.median >= bars.sessionRatio),
        ],
        [
          'Surrogate, sign-in by password, beside Argon2',
          `${range(beside, 2)} ms`,
          `≤ ${bars.besideHashingMs} ms`,
          verdict(beside.median <= bars.besideHashingMs),
        ],
        ['oidc-provider / Surrogate, the same', `${range(besideRatio, 2)} ×`, '', ''],
        ['the floor, the same', `${range(over(floor, besideHashing), 2)} ms`, '', ''],
        [
          'Surrogate, sign-in by password, all of it / Argon2 by itself',
          `${range(timesHashing(ours), 2)} ×`,
          `≤ ${mostOfHashing.toFixed(2)} ×`,
          verdict(timesHashing(ours).median <= mostOfHashing),
        ],
        ['the floor, the same', `${range(timesHashing(floor), 2)} ×`, '', ''],
        ['oidc-provider, the same', `${range(timesHashing(peer), 2)} ×`, '', ''],
        ['Surrogate / the floor, sign-ins by password a second', `${range(ofFloor, 2)} ×`, '', ''],
        [
          'Surrogate, requests of a sign-in by password',
          requests.median.toFixed(0),
          `≤ ${bars.requests}`,
          verdict(requests.median <= bars.requests),
        ],
      ],
    ],
    figures: measured,
  }
}
