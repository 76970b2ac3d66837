import { type RoundTripOn, startCountingProxy } from '../../test/support/counting-proxy.ts'
import { createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import { type Connection, countWriting } from '../harness/database-store.ts'
import { spread } from '../harness/measure.ts'
import { underTest } from '../harness/process.ts'
import { signIn } from '../harness/sign-in-flow.ts'
import type { Stage } from '../harness/stage.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { issuerOf, personOf, siteOf, verdict } from './sign-in-world.ts'

const flows = 20
const atMost = 4

interface Noted extends RoundTripOn {
  roundTrip: string
}

/**
 * What a sign-in by password asks PostgreSQL for, read off the wire of an issuer of its own, one sign-in at a time: the
 * fewest of some, because what the issuer does beside it only adds.
 */
export const measureTransactions = async (stage: Stage, postgres: Connection, digest: string): Promise<Page> => {
  const seeded = await seedSignIn(postgres, { digest, name: 'sign_in_transactions' })
  stage.onStop(seeded.close)
  let noted: Noted[] = []
  const proxy = await startCountingProxy(seeded.connection, {
    onRoundTrip: (roundTrip, on) => noted.push({ roundTrip, ...on }),
  })
  stage.onStop(proxy.close)
  const server = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), underTest, {
    connection: proxy.connection,
  })
  const site = siteOf(server, { ...seeded, issuer: await issuerOf(server) })
  const browser = createBrowser(site)
  const one = async (user: number) => {
    browser.clear()
    return signIn(browser, site, personOf(user))
  }
  // Statements are prepared, keys are read.
  for (let user = 1; user <= flows; user++) await one(user)

  const counted: Counted[] = []
  for (let user = 1; user <= flows; user++) {
    const before = await countWriting(seeded.connection)
    noted = []
    const { requests } = await one(user)
    const steps = stepsOf(noted)
    const notified = steps.filter(({ roundTrip }) => /^notify/i.test(roundTrip)).length
    // That others are told that there are events is no work of the sign-in, but counts as a transaction.
    const writing = (await countWriting(seeded.connection)) - before - notified
    counted.push({ requests, writing, steps })
  }
  browser.close()
  const least = (pick: (one: Counted) => number) => spread(counted.map(pick)).low
  const writing = least((one) => one.writing)
  const open = openWhileHashing(counted)
  return {
    tables: [
      [
        ['a sign-in by password, in PostgreSQL', '', 'bar', ''],
        ['statements, BEGIN and COMMIT included', String(least(({ steps }) => steps.length)), '', ''],
        [
          'of them waited for before the next one is sent',
          String(least(({ steps }) => steps.filter(({ isBehind }) => !isBehind).length)),
          '',
          '',
        ],
        ['transactions that write', String(writing), `≤ ${atMost}`, verdict(writing <= atMost)],
        ['of them with BEGIN and COMMIT', String(least(({ steps }) => steps.filter(begins).length)), '', ''],
        ['transactions open while the password is hashed', String(open), '0', verdict(open === 0)],
      ],
    ],
    figures: counted,
  }
}

interface Counted {
  requests: number
  writing: number
  steps: Step[]
}

interface Step {
  roundTrip: string
  /** Sent without waiting for the one before it on its connection. */
  isBehind: boolean
  /** Transactions before it. */
  open: number
}

const begins = ({ roundTrip }: Pick<Step, 'roundTrip'>) => /^begin/i.test(roundTrip)
const ends = ({ roundTrip }: Pick<Step, 'roundTrip'>) => /^(commit|rollback)/i.test(roundTrip)

const stepsOf = (noted: readonly Noted[]): Step[] => {
  const open = new Set<number>()
  return noted.map(({ roundTrip, connection, isBehind }) => {
    const step = { roundTrip, isBehind, open: open.size }
    if (begins(step)) open.add(connection)
    else if (ends(step)) open.delete(connection)
    return step
  })
}

/** Before what keeps the success; jobs in the background have transactions of their own, so the least of some. */
const openWhileHashing = (counted: readonly Counted[]): number =>
  spread(
    counted.flatMap(({ steps }) => steps.filter(({ roundTrip }) => roundTrip === afterHashing)).map(({ open }) => open),
  ).low

const afterHashing = 'sign-in-success'
