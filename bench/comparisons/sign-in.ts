import { deepStrictEqual, partialDeepStrictEqual } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import { createPasswordHasher } from '../../issuer/directory/users/password.ts'
import { type Cookie, createBrowser } from '../harness/browser.ts'
import type { Comparison, Contestant, Page, Ratio } from '../harness/comparison.ts'
import type { Connection } from '../harness/database-store.ts'
import type { FlowResult, Flows } from '../harness/flow-driver.ts'
import { measure, type Settings, type Spread, spread } from '../harness/measure.ts'
import { people } from '../harness/people.ts'
import { type BenchProcess, support, underTest } from '../harness/process.ts'
import { range, tablesOf } from '../harness/report.ts'
import { sendExpecting } from '../harness/send.ts'
import { authorize, redeem, type Site, signIn as signInOnce } from '../harness/sign-in-flow.ts'
import type { Stage } from '../harness/stage.ts'
import type { SignInPeerSettings } from '../peers/oidc-sign-in.ts'
import { seedSignInPeer } from '../peers/oidc-sign-in-seed-store.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { startPostgres } from './issuer.ts'
import { measureBurst } from './sign-in-burst.ts'
import { measureCode } from './sign-in-code.ts'
import { measureEnds } from './sign-in-ends.ts'
import { measurePage } from './sign-in-page.ts'
import { measurePages } from './sign-in-pages.ts'
import { measureProofs } from './sign-in-proofs.ts'
import { measureTiming } from './sign-in-timing.ts'
import { measureTransactions } from './sign-in-transactions.ts'
import {
  type Issuer,
  issuerOf,
  manager,
  password,
  personOf,
  refreshRequest,
  type SignInWorld,
  signInScope,
  siteOf,
  verdict,
} from './sign-in-world.ts'

/**
 * People sign in: refresh tokens that rotate, whole sign-ins by password and by the session of the browser, beside
 * oidc-provider on one PostgreSQL with `fsync` on. And of ours alone: transactions of a sign-in, how long an ended
 * session still works at a gateway, the size of the pages and how soon they are painted, what many passwords at once
 * leave to others, how soon a code arrives by mail, what proofs cost, and whether the time of a refusal tells its reason.
 */
export const signIn: Comparison = {
  name: 'sign-in',
  title: 'People sign in: refresh with rotation, code flow by password and by session, on Postgres (fsync on)',
  // As many as the token requests of `issuer`, and for the same reason.
  connections: 64,
  async run(stage, settings, progress) {
    const postgres = await startPostgres(stage)
    const digest = (await createPasswordHasher().hash(password)).digest
    const peer = await preparePeer(stage, postgres, digest)
    const ours = await prepareOurs(stage, postgres, digest)
    const refreshed = await refresh(stage, settings, progress, [peer, ours])
    const flows = await measureFlows(stage, settings, progress, { peer, ours, digest })
    progress('transactions')
    const transactions = await measureTransactions(stage, postgres, digest)
    progress('ends of sessions')
    const ends = await measureEnds(stage, ours)
    progress('page')
    const page = await measurePage(ours.site)
    progress('pages')
    const pages = await measurePages(stage, ours.site)
    progress('a burst of passwords')
    const burst = await measureBurst(stage, postgres, digest, settings)
    progress('codes by mail')
    const code = await measureCode(stage, postgres, digest, settings)
    progress('proofs')
    const proofs = await measureProofs(stage, postgres, digest)
    progress('timing of refusals')
    const timing = await measureTiming(stage, postgres, digest)
    const parts = [flows, transactions, ends, page, pages, burst, code, proofs, timing]
    return {
      tables: [...tablesOf(refreshed), ...parts.flatMap(({ tables }) => tables)],
      figures: {
        refresh: refreshed,
        flows: flows.figures,
        transactions: transactions.figures,
        ends: ends.figures,
        page: page.figures,
        pages: pages.figures,
        burst: burst.figures,
        code: code.figures,
        proofs: proofs.figures,
        timing: timing.figures,
      },
    }
  },
}

const everybody = Array.from({ length: people.subjects }, (_, index) => index + 1)

const preparePeer = async (stage: Stage, postgres: Connection, digest: string): Promise<Issuer> => {
  // It makes its addresses from the header `host`, so this is a name only.
  const issuer = 'http://localhost:3001'
  const world = await seedSignInPeer(postgres, { issuer, digest })
  stage.onStop(world.close)
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const privateJwk = { ...(await exportJWK(privateKey)), kid: 'bench', alg: 'ES256', use: 'sig' }
  const settings: SignInPeerSettings = { connection: world.connection, privateJwk, issuer }
  const server = await stage.serve(new URL('../peers/oidc-sign-in.ts', import.meta.url), underTest, settings)
  return { name: 'oidc-provider', server, world, site: siteOf(server, world) }
}

const prepareOurs = async (stage: Stage, postgres: Connection, digest: string) => {
  const { mintRefreshTokens, ...seeded } = await seedSignIn(postgres, { digest, name: 'sign_in' })
  stage.onStop(seeded.close)
  const server = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), underTest, {
    connection: seeded.connection,
    bootstrap: manager,
  })
  const world = { ...seeded, mintRefreshTokens, issuer: await issuerOf(server) }
  return { name: 'Surrogate', server, world, site: siteOf(server, world) }
}

const refreshRatios: Ratio[] = [{ of: 'oidc-provider, refresh', to: 'Surrogate, refresh', atLeast: 2 }]

const refresh = async (
  stage: Stage,
  settings: Settings,
  progress: (line: string) => void,
  issuers: readonly Issuer[],
) => {
  const { process: generator } = await stage.start(new URL('../harness/load-generator.ts', import.meta.url), support)
  const prepared = { contestants: issuers.map(refreshContestant), ratios: refreshRatios }
  return measure({ prepared, generator, progress, ...settings })
}

const refreshContestant = ({ name, server, world, site }: Issuer): Contestant => {
  const request = (token: string) => refreshRequest(site, token)
  return {
    name: `${name}, refresh`,
    server,
    once: true,
    requests: async (count) => {
      const users = Array.from({ length: count }, () => 1 + Math.floor(Math.random() * people.subjects))
      return (await world.mintRefreshTokens(users)).map(request)
    },
    expected: { status: 200, bodyIncludes: '"id_token"' },
    preflight: async () => {
      const [token = '', other = ''] = await world.mintRefreshTokens([1, 2])
      await sendExpecting(server.port, request('unknown'), 400)
      const stranger = { ...site, client: { ...site.client, id: 'somebody-else' } }
      await sendExpecting(server.port, refreshRequest(stranger, token), 400, 401)
      const first = JSON.parse(await sendExpecting(server.port, request(token), 200))
      await assertTokens(world, site, first, {})
      await world.endLeeway(token)
      await sendExpecting(server.port, request(token), 400)
      // Whoever of the two was the thief: neither has anything any more.
      await sendExpecting(server.port, request(first.refresh_token), 400)
      await sendExpecting(server.port, request(other), 200)
    },
  }
}

/** Both tokens carry good signatures and tell the same of the first user, whoever made them. */
const assertTokens = async (
  { issuer, paths }: SignInWorld,
  { port, client, resource }: Site,
  answer: { access_token: string; id_token: string; refresh_token: string; scope: string },
  idClaims: object,
): Promise<void> => {
  const keys = createRemoteJWKSet(new URL(`http://127.0.0.1:${port}${paths.jwks}`))
  const id = await jwtVerify(answer.id_token, keys, { issuer, audience: client.id, algorithms: ['ES256'] })
  const access = await jwtVerify(answer.access_token, keys, { issuer, audience: resource, algorithms: ['ES256'] })
  partialDeepStrictEqual(id.payload, { email: '1@example.test', email_verified: true, name: 'User 1', ...idClaims })
  for (const claim of ['auth_time', 'created_at', 'updated_at']) {
    if (id.payload[claim] === undefined) throw new Error(`the ID token has no ${claim}`)
  }
  deepStrictEqual(access.payload.sub, id.payload.sub)
  partialDeepStrictEqual(access.payload, { client_id: client.id, scope: signInScope.resource.join(' ') })
  partialDeepStrictEqual(access.protectedHeader, { typ: 'at+jwt' })
  if (!answer.refresh_token) throw new Error('there is no refresh token')
}

/** Who skips a check must not win: a wrong password, a wrong verifier, a code for the second time. */
const assertSignsIn = async ({ world, site }: Issuer): Promise<void> => {
  const browser = createBrowser(site)
  const isRefused = await authorize(browser, site, { ...personOf(1), password: 'wrong password' }).then(
    () => false,
    () => true,
  )
  if (!isRefused) throw new Error('a wrong password leads to a code')
  browser.clear()
  const authorized = await authorize(browser, site, personOf(1))
  const wrong = await redeem(browser, site, { ...authorized, verifier: randomBytes(32).toString('base64url') })
  const again = await authorize(browser, site)
  const right = await redeem(browser, site, again)
  const replayed = await redeem(browser, site, again)
  browser.close()
  const answers = [wrong, right, replayed]
  deepStrictEqual(
    answers.map(({ status }) => status),
    [400, 200, 400],
    answers.map(({ body }) => body).join('\n'),
  )
  await assertTokens(world, site, JSON.parse(right.body), { nonce: again.nonce })
}

/**
 * V8 compiles well only what it has seen often, and Argon2 lets few sign-ins through: what one costs falls until about a
 * thousand, and does not after that.
 */
const warmUpSignIns = 1_500

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

const measureFlows = async (
  stage: Stage,
  settings: Settings,
  progress: (line: string) => void,
  { peer, ours, digest }: { peer: Issuer; ours: Issuer; digest: string },
): Promise<Page> => {
  const { process: driver } = await stage.start(new URL('../harness/flow-driver.ts', import.meta.url), support)
  const contestants: { issuer: Issuer; browsers: Cookie[][]; rounds: FlowRound[] }[] = []
  for (const issuer of [peer, ours]) {
    progress(`warm-up: ${issuer.name}`)
    await assertSignsIn(issuer)
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

const signedInBrowsers = async ({ site }: Issuer, count: number): Promise<Cookie[][]> => {
  const browsers: Cookie[][] = []
  const browser = createBrowser(site)
  for (let number = 1; number <= count; number++) {
    browser.clear()
    await signInOnce(browser, site, personOf(number))
    browsers.push(browser.cookies())
  }
  browser.close()
  return browsers
}

type FlowContestant = { issuer: Issuer; browsers: Cookie[][]; driver: BenchProcess; digest: string }

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
    password: await sample({ site, seconds, connections: passwordConnections, people: everybody.map(personOf) }),
    session: await sample({ site, seconds, connections, browsers }),
  }
}

/** In ms: what those threads do beyond what they do in a sign-in without a password is hashing. */
const hashing = ({ password, session }: FlowRound): number => (password.poolMicros - session.poolMicros) / 1000
const besideHashing = (round: FlowRound): number => round.password.cpuMicros / 1000 - hashing(round)

const bars = { besideHashingMs: 2, requests: 4, sessionRatio: 2.5 }

const flowPage = (measured: { name: string; rounds: FlowRound[] }[]): Page => {
  const over = ({ rounds }: { rounds: FlowRound[] }, pick: (round: FlowRound) => number): Spread =>
    spread(rounds.map(pick))
  const rates = (kind: 'password' | 'session') => (of: { rounds: FlowRound[] }) => [
    range(
      over(of, (round) => round[kind].result.flows / round[kind].result.seconds),
      0,
    ),
    over(of, (round) => round[kind].result.p50Ms).median.toFixed(1),
    over(of, (round) => round[kind].result.p99Ms).median.toFixed(1),
    over(of, (round) => round[kind].result.requests).median.toFixed(0),
    over(of, (round) => round[kind].result.cpuMicros / round[kind].result.flows).median.toFixed(0),
  ]
  const rateHeads = ['sign-ins/s', 'p50 ms', 'p99 ms', 'requests', 'load µs']
  const [peer, ours] = measured as [(typeof measured)[number], (typeof measured)[number]]
  const ratio = spread(
    ours.rounds.map(({ session }, round) => peer.rounds[round]!.session.cpuMicros / session.cpuMicros),
  )
  const beside = over(ours, besideHashing)
  const requests = over(ours, ({ password }) => password.result.requests)
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
