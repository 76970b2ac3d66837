import { createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import type { Connection } from '../harness/database-store.ts'
import { underTest } from '../harness/process.ts'
import { openPage, submit } from '../harness/sign-in-flow.ts'
import type { Stage } from '../harness/stage.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { issuerOf, personOf, siteOf, verdict } from './sign-in-world.ts'

const rounds = 1_000
const warmUp = 20
/** Three standard errors of the share below, where nothing can be told apart. */
const tolerance = 0.04

const wrong = 'wrong password'
const [withPassword, withoutPassword, suspended] = [101, 102, 103] as const
/** Identifiers of one length. */
const attempts: Readonly<Record<string, string>> = {
  [wrong]: personOf(withPassword).identifier,
  'unknown person': '1x4@example.test',
  'person without a password': personOf(withoutPassword).identifier,
  'suspended, wrong password': personOf(suspended).identifier,
}
const kinds = Object.keys(attempts)

/**
 * How long the refusal of a sign-in takes, by the reason that it must not tell: one attempt at a time, in another order
 * each round, and each as if it were the first. Two kinds cannot be told apart where one takes longer than the other as
 * often as not: the share of all pairs, of which one half is best.
 */
export const measureTiming = async (stage: Stage, postgres: Connection, digest: string): Promise<Page> => {
  const seeded = await seedSignIn(postgres, { digest, name: 'sign_in_timing' })
  stage.onStop(seeded.close)
  await seeded.refuse({ withoutPassword, suspended })
  const server = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), underTest, {
    connection: seeded.connection,
  })
  const site = siteOf(server, { ...seeded, issuer: await issuerOf(server) })
  const browser = createBrowser(site)
  let page = await openPage(browser, site)
  const took = new Map(kinds.map((kind) => [kind, [] as number[]]))
  for (let round = -warmUp; round < rounds; round++) {
    for (const kind of shuffled(kinds)) {
      await seeded.forgetFailures()
      const begun = performance.now()
      const { status, body } = await submit(browser, page, site, { identifier: attempts[kind]!, password: wrong })
      const ms = performance.now() - begun
      if (status !== 400 || !body.includes('type="password"')) throw new Error(`${kind}: ${status}\n${body}`)
      page = body
      if (round >= 0) took.get(kind)!.push(ms)
    }
  }
  browser.close()
  const reference = took.get(wrong)!
  return {
    tables: [
      [
        [`a refused sign-in, ${rounds} of each`, 'p50 ms', 'p95 ms', `longer than "${wrong}"`, 'bar', ''],
        ...kinds.map((kind) => {
          const values = took.get(kind)!
          const measured = [kind, at(values, 0.5), at(values, 0.95)]
          if (kind === wrong) return [...measured, '', '', '']
          const share = shareOfLonger(values, reference)
          const isMet = Math.abs(share - 0.5) <= tolerance
          return [...measured, share.toFixed(3), `0.5 ± ${tolerance}`, verdict(isMet)]
        }),
      ],
    ],
    figures: Object.fromEntries(took),
  }
}

const at = (values: readonly number[], share: number): string =>
  (values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN).toFixed(2)

/** Of all pairs, the share in which the one takes longer than the other (Mann-Whitney U, divided by their number). */
const shareOfLonger = (ones: readonly number[], others: readonly number[]): number => {
  let longer = 0
  for (const one of ones) for (const other of others) longer += one > other ? 1 : one === other ? 0.5 : 0
  return longer / (ones.length * others.length)
}

const shuffled = (items: readonly string[]): string[] =>
  items
    .map((item) => ({ item, order: Math.random() }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ item }) => item)
