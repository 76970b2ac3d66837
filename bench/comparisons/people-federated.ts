import { type Browser, createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import { addDatabase } from '../harness/database-store.ts'
import { type Spread, spread } from '../harness/measure.ts'
import { ofHashing } from '../harness/password-cost.ts'
import { support, underTest } from '../harness/process.ts'
import { range } from '../harness/report.ts'
import { begin, followed, pressProvider, redeemAll, type Site } from '../harness/sign-in-flow.ts'
import type { Server } from '../harness/stage.ts'
import type { FederatedFloorSettings } from '../peers/federated-floor.ts'
import type { ProviderAddress } from '../targets/identity-provider.ts'
import { newKey, seedConnector } from '../targets/people-seed-store.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { managementToken } from './management.ts'
import { callApi, type PeopleWorld } from './people-world.ts'
import { warmUpSignIns } from './sign-in-flows.ts'
import { floorSiteOf, issuerOf, manager, password, signInClient, siteOf, verdict } from './sign-in-world.ts'

const barMs = 3
/** Of a round, each. An address may begin 100 in ten minutes, so each browser has one of its own. */
const times = { alone: 96, together: 3 }
/** As the other requests of the issuer are measured. */
const together = 64
/**
 * V8 compiles for good what was called some thousand times, and nearly all of a sign-in is called once or twice by each:
 * its cost falls until then.
 */
const warmUp = 6_000

interface Contestant {
  server: Server
  at: Site
}

interface Round {
  cpuMicros: number
  /** Of one sign-in. */
  ms: number
}

/**
 * Whole sign-ins of people whom a provider on this machine knows: authorization request, page, button, callback, code
 * for tokens. One at a time, and many people at once as an issuer with work has them; the CPU is the issuer's alone.
 * Beside them the same at a server that decides nothing.
 */
export const measureFederated = async ({ stage, postgres, digest, rounds }: PeopleWorld): Promise<Page> => {
  const key = newKey()
  const seeded = await seedSignIn(postgres, { digest, name: 'people_federated' })
  stage.onStop(seeded.close)
  const { connection } = seeded
  const { process: provider } = await stage.start(new URL('../targets/identity-provider.ts', import.meta.url), support)
  const address = await provider.call<ProviderAddress>('address')
  const connectorId = await seedConnector(connection, { key, provider: address })
  const issuer = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), underTest, {
    ...{ connection, key, bootstrap: manager, trustedProxies: ['127.0.0.1'], allowedNetworks: ['127.0.0.0/8'] },
  })
  const token = await managementToken(issuer, manager)
  await callApi(issuer, 'PATCH', '/sign-in-exp', {
    token,
    body: {
      socialSignInConnectorTargets: ['bench'],
      signUp: { identifiers: [], password: false, verify: false },
    },
  })
  const site = siteOf(issuer, { ...seeded, issuer: await issuerOf(issuer) })

  const floorSettings: FederatedFloorSettings = {
    connection: await addDatabase(postgres, 'people_federated_floor'),
    provider: address,
    redirectUri: signInClient.redirectUri,
    connectorId,
  }
  const floor = await stage.serve(new URL('../peers/federated-floor.ts', import.meta.url), underTest, floorSettings)

  let browsersYet = 0
  const newBrowser = (at: Site) => {
    const number = browsersYet++
    return createBrowser({ ...at, address: `10.0.${number >> 8}.${number & 255}` })
  }
  const oneSignIn = async (browser: Browser, at: Site, person: string) => {
    browser.clear()
    const { sent, page } = await begin(browser, at)
    const { location = '' } = await pressProvider(browser, page, at, connectorId)
    const { pathname, search } = new URL(await provider.call<string>('signIn', { url: location, person }))
    const authorized = await followed(browser, at, { sent, visit: await browser.get(pathname + search) })
    await redeemAll(browser, at, authorized)
  }
  const round = async ({ server, at }: Contestant, atOnce: number, each: number): Promise<Round> => {
    const browsers = Array.from({ length: atOnce }, () => newBrowser(at))
    const before = await server.process.call<number>('cpu')
    const begunAt = performance.now()
    await Promise.all(
      browsers.map(async (browser, number) => {
        for (let count = 0; count < each; count++) await oneSignIn(browser, at, `person-${number}@example.com`)
      }),
    )
    const micros = (await server.process.call<number>('cpu')) - before
    for (const browser of browsers) browser.close()
    return { cpuMicros: micros / (atOnce * each), ms: (performance.now() - begunAt) / each }
  }
  const ours = { server: issuer, at: site }
  const bare = { server: floor, at: floorSiteOf(floor) }
  const first: Round[] = []
  // The first sign-in of each person makes the account.
  for (const one of [ours, bare])
    for (let done = 0; done < warmUp; done += together * times.together) {
      const measured = await round(one, together, times.together)
      if (one === ours && done < warmUpSignIns) first.push(measured)
    }
  const hashing: number[] = []
  const measured: Record<'alone' | 'together' | 'floorAlone' | 'floorTogether', Round[]> = {
    alone: [],
    together: [],
    floorAlone: [],
    floorTogether: [],
  }
  for (let number = 0; number < rounds; number++) {
    measured.alone.push(await round(ours, 1, times.alone))
    measured.together.push(await round(ours, together, times.together))
    measured.floorAlone.push(await round(bare, 1, times.alone))
    measured.floorTogether.push(await round(bare, together, times.together))
    hashing.push(await issuer.process.call<number>('passwordMicros', { password, digest, times: 40 }))
  }
  const row = (name: string, of: Round[], judged: (cpu: Spread) => string[]) => {
    const cpu = spread(of.map(({ cpuMicros }) => cpuMicros))
    return [name, range(cpu, 0), spread(of.map(({ ms }) => ms)).median.toFixed(1), ...judged(cpu)]
  }
  const overHashing = (of: Round[]) => spread(of.map(({ cpuMicros }, index) => cpuMicros / hashing[index]!))
  const [ratio, floorRatio] = [overHashing(measured.together), overHashing(measured.floorTogether)]
  return {
    tables: [
      [
        ['a sign-in by an identity provider', 'CPU µs', 'ms', 'bar', ''],
        row('from the authorization request to the tokens', measured.alone, () => ['', '']),
        row(`the same, ${together} at once`, measured.together, ({ median }) => [
          `≤ ${barMs * 1000} µs`,
          verdict(median <= barMs * 1000),
        ]),
        row(`the same, the first ${warmUpSignIns} of a process`, first, () => ['', '']),
        row('the floor', measured.floorAlone, () => ['', '']),
        row(`the floor, ${together} at once`, measured.floorTogether, () => ['', '']),
        ['Argon2 of a password, by itself', range(spread(hashing), 0), '', '', ''],
        [
          `${together} at once / Argon2 of a password`,
          `${range(ratio, 2)} ×`,
          '',
          `≤ ${ofHashing(barMs).toFixed(2)} ×`,
          verdict(ratio.median <= ofHashing(barMs)),
        ],
        [`the floor, ${together} at once / Argon2 of a password`, `${range(floorRatio, 2)} ×`, '', '', ''],
      ],
    ],
    figures: measured,
  }
}
