import { startCountingProxy } from '../../test/support/counting-proxy.ts'
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

interface Noted {
  at: number
  roundTrip: string
  connection: number
}

/**
 * What a sign-in by password asks PostgreSQL for, read off the wire of an issuer of its own, one sign-in at a time: the
 * fewest of some, because what the issuer does beside it only adds. The longest silence in it is the hashing of the
 * password.
 */
export const measureTransactions = async (stage: Stage, postgres: Connection, digest: string): Promise<Page> => {
  const seeded = await seedSignIn(postgres, { digest, name: 'sign_in_transactions' })
  stage.onStop(seeded.close)
  let noted: Noted[] = []
  const proxy = await startCountingProxy(seeded.connection, {
    onRoundTrip: (roundTrip, connection) => noted.push({ at: performance.now(), roundTrip, connection }),
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

  const counted: (ReturnType<typeof summary> & { writing: number; requests: number })[] = []
  for (let user = 1; user <= flows; user++) {
    const before = await countWriting(seeded.connection)
    noted = []
    const { requests } = await one(user)
    const found = summary(noted)
    counted.push({ ...found, requests, writing: (await countWriting(seeded.connection)) - before })
  }
  browser.close()
  const least = (pick: (one: (typeof counted)[number]) => number) => spread(counted.map(pick)).low
  const open = Math.max(...counted.map(({ openInSilence }) => openInSilence))
  const transactions = least((one) => one.transactions)
  return {
    tables: [
      [
        ['a sign-in by password, in PostgreSQL', '', 'bar', ''],
        ['transactions', String(transactions), `≤ ${atMost}`, verdict(transactions <= atMost)],
        ['statements by themselves', String(least((one) => one.alone)), '', ''],
        ['transactions and statements that write', String(least((one) => one.writing)), '', ''],
        ['transactions open while the password is hashed', String(open), '0', verdict(open === 0)],
      ],
    ],
    figures: counted,
  }
}

const begins = (roundTrip: string) => /^begin/i.test(roundTrip)
const ends = (roundTrip: string) => /^(commit|rollback)/i.test(roundTrip)

const summary = (noted: readonly Noted[]) => {
  const open = new Set<number>()
  let alone = 0
  let silence = { length: 0, openInSilence: 0 }
  let last: number | undefined
  for (const { at, roundTrip, connection } of noted) {
    if (last !== undefined && at - last > silence.length) silence = { length: at - last, openInSilence: open.size }
    last = at
    if (begins(roundTrip)) open.add(connection)
    else if (ends(roundTrip)) open.delete(connection)
    else if (!open.has(connection)) alone += 1
  }
  return {
    transactions: noted.filter(({ roundTrip }) => begins(roundTrip)).length,
    alone,
    silenceMs: silence.length,
    openInSilence: silence.openInSilence,
    roundTrips: noted.map(({ roundTrip }) => roundTrip),
  }
}
