import { decodeJwt } from 'jose'
import { createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import { percentile } from '../harness/percentiles.ts'
import { support, underTest } from '../harness/process.ts'
import { authorize, redeem } from '../harness/sign-in-flow.ts'
import type { Arrivals, SinkPorts } from '../peers/webhook-sink.ts'
import { newKey, seedLogouts, signedOutUri } from '../targets/people-seed-store.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import type { PeopleWorld } from './people-world.ts'
import { issuerOf, personOf, siteOf, verdict } from './sign-in-world.ts'

const applications = 100
const hung = 10
const atMostMs = 1_000

/**
 * Somebody signs out who has signed in at 100 applications: what telling them adds to the answer of the sign-out, and
 * when the last of those that answer was reached. Once more with ten of them that take the connection and never answer.
 */
export const measureLogouts = async ({ stage, postgres, digest, rounds }: PeopleWorld): Promise<Page> => {
  const key = newKey()
  const seeded = await seedSignIn(postgres, { digest, name: 'people_logouts' })
  stage.onStop(seeded.close)
  const { connection } = seeded
  const sink = await stage.start<SinkPorts>(new URL('../peers/webhook-sink.ts', import.meta.url), support)
  const logouts = await seedLogouts(connection)
  stage.onStop(logouts.close)
  const addresses = (port: number, count: number, group: string) =>
    Array.from({ length: count }, (_, number) => `http://127.0.0.1:${port}/${group}/${number}`)
  const { port, hungPort } = sink.result
  const groups = [
    { name: 'told', title: `${applications} that are told`, answering: applications },
    { name: 'partly', title: `${applications}, ${hung} of which never answer`, answering: applications - hung },
  ]
  await logouts.register(
    'untold',
    Array.from({ length: applications }, () => undefined),
  )
  await logouts.register('told', addresses(port, applications, 'told'))
  await logouts.register('partly', [
    ...addresses(port, applications - hung, 'partly'),
    ...addresses(hungPort, hung, 'hung'),
  ])
  const issuer = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), underTest, { connection, key })
  await stage.start(new URL('../targets/relay.ts', import.meta.url), underTest, { connection, key })
  const site = siteOf(issuer, { ...seeded, issuer: await issuerOf(issuer) })

  let last = 0
  /** `answering`: how many are to be reached. */
  const signOut = async (group: string, answering: number) => {
    const browser = createBrowser(site)
    const authorized = await authorize(browser, site, personOf(++last))
    const { id_token: idToken } = JSON.parse((await redeem(browser, site, authorized)).body)
    await logouts.signInAt(group, String(decodeJwt(idToken)['sid']))
    await sink.process.call('clear')
    const query = new URLSearchParams({ id_token_hint: idToken, post_logout_redirect_uri: signedOutUri })
    const begun = performance.now()
    const { status, location } = await browser.get(`/oidc/session/end?${query}`)
    const answeredMs = performance.now() - begun
    browser.close()
    if (status !== 303 || location !== signedOutUri) throw new Error(`not signed out: ${status} ${location}`)
    if (answering === 0) return { answeredMs, reachedMs: Number.NaN }
    const { different } = await sink.process.call<{ different: number }>('until', answering)
    if (different !== answering) throw new Error(`${different} of ${answering} applications were told`)
    const arrivals = Object.values(await sink.process.call<Arrivals>('arrivals'))
    return { answeredMs, reachedMs: Math.max(...arrivals) - (performance.timeOrigin + begun) }
  }

  const measured = new Map<string, { answeredMs: number; reachedMs: number }[]>()
  const all = [{ name: 'untold', title: `${applications} that are told nothing`, answering: 0 }, ...groups]
  for (let round = -2; round < 2 * rounds; round++) {
    for (const { name, answering } of all) {
      const one = await signOut(name, answering)
      if (round >= 0) measured.set(name, [...(measured.get(name) ?? []), one])
    }
  }
  const of = (name: string, pick: 'answeredMs' | 'reachedMs', share: number) =>
    percentile(
      (measured.get(name) ?? []).map((one) => one[pick]),
      share,
    )
  const base = of('untold', 'answeredMs', 0.5)
  return {
    tables: [
      [
        [
          'a sign-out, with applications',
          'p50 ms',
          'longest ms',
          'adds, longest ms',
          'bar',
          '',
          'all reached, longest ms',
        ],
        ['that are told nothing', base.toFixed(1), of('untold', 'answeredMs', 1).toFixed(1), '', '', '', ''],
        ...groups.map(({ name, title }) => {
          const longest = of(name, 'answeredMs', 1)
          const added = longest - base
          return [
            title,
            of(name, 'answeredMs', 0.5).toFixed(1),
            longest.toFixed(1),
            added.toFixed(1),
            `≤ ${atMostMs} ms`,
            // The wait ends after a second; what it is beside that is the sign-out's own.
            verdict(added <= atMostMs),
            of(name, 'reachedMs', 1).toFixed(1),
          ]
        }),
      ],
    ],
    figures: Object.fromEntries(measured),
  }
}
