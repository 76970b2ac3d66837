import { createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import { spread } from '../harness/measure.ts'
import { support, underTest } from '../harness/process.ts'
import { range } from '../harness/report.ts'
import { begin, followed, pressProvider, redeemAll } from '../harness/sign-in-flow.ts'
import type { ProviderAddress } from '../targets/identity-provider.ts'
import { newKey, seedConnector } from '../targets/people-seed-store.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { managementToken } from './management.ts'
import { callApi, type PeopleWorld } from './people-world.ts'
import { warmUpSignIns } from './sign-in-flows.ts'
import { issuerOf, manager, siteOf, verdict } from './sign-in-world.ts'

const barMicros = 3_000
/** Of a round. An address may begin 100 in ten minutes, so each browser has one of its own. */
const times = 50
const warmUpRounds = warmUpSignIns / times

/**
 * Whole sign-ins of somebody whom a provider on this machine knows: authorization request, page, button, callback, code
 * for tokens. One at a time; the CPU is the issuer's alone.
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

  const round = async (number: number) => {
    const browser = createBrowser({ ...site, address: `10.0.${number >> 8}.${number & 255}` })
    const before = await issuer.process.call<number>('cpu')
    const begunAt = performance.now()
    for (let count = 0; count < times; count++) {
      browser.clear()
      const { sent, page } = await begin(browser, site)
      const { location = '' } = await pressProvider(browser, page, site, connectorId)
      const { pathname, search } = new URL(await provider.call<string>('signIn', location))
      const authorized = await followed(browser, site, { sent, visit: await browser.get(pathname + search) })
      await redeemAll(browser, site, authorized)
    }
    const micros = (await issuer.process.call<number>('cpu')) - before
    browser.close()
    return { cpuMicros: micros / times, ms: (performance.now() - begunAt) / times }
  }
  for (let number = 0; number < warmUpRounds; number++) await round(number)
  const measured: { cpuMicros: number; ms: number }[] = []
  for (let number = 0; number < rounds; number++) measured.push(await round(warmUpRounds + number))
  const cpu = spread(measured.map(({ cpuMicros }) => cpuMicros))
  return {
    tables: [
      [
        ['a sign-in by an identity provider', 'CPU µs', 'ms', 'bar', ''],
        [
          'from the authorization request to the tokens',
          range(cpu, 0),
          spread(measured.map(({ ms }) => ms)).median.toFixed(1),
          `≤ ${barMicros} µs`,
          verdict(cpu.median <= barMicros),
        ],
      ],
    ],
    figures: measured,
  }
}
