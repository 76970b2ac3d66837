import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import type { Connection } from '../harness/database-store.ts'
import type { Settings } from '../harness/measure.ts'
import { people } from '../harness/people.ts'
import { percentile } from '../harness/percentiles.ts'
import { support, underTest } from '../harness/process.ts'
import { begin } from '../harness/sign-in-flow.ts'
import type { Stage } from '../harness/stage.ts'
import { createWire, type Wire } from '../harness/wire.ts'
import { seedMail } from '../targets/mail-seed-store.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { issuerOf, personOf, siteOf, verdict } from './sign-in-world.ts'

const atMostMs = 200
const perSecond = 20
/** For the sake of the 99th percentile. Everybody asks once: there are limits for each recipient. */
const fewest = 400
const warmUp = 50

/**
 * From asking for a code to the arrival of the mail at an SMTP server, in an open loop: the code is made, counted,
 * sealed and committed by one process, taken up and sent by a relay, and received by a third.
 */
export const measureCode = async (
  stage: Stage,
  postgres: Connection,
  digest: string,
  { rounds, seconds }: Pick<Settings, 'rounds' | 'seconds'>,
): Promise<Page> => {
  const key = randomBytes(32).toString('hex')
  const seeded = await seedSignIn(postgres, { digest, name: 'sign_in_code' })
  stage.onStop(seeded.close)
  const { connection } = seeded
  const mail = await stage.start<number>(new URL('../peers/mail-server.ts', import.meta.url), support)
  await seedMail(connection, { key, port: mail.result })
  const issuer = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), support, {
    ...{ connection, key },
    interactionsPerAddress: 0,
  })
  const site = siteOf(issuer, { ...seeded, issuer: await issuerOf(issuer) })
  const sender = await stage.serve(new URL('../targets/code-sender.ts', import.meta.url), underTest, {
    ...{ connection, key },
    baseUrl: site.origin,
  })
  await stage.start(new URL('../targets/relay.ts', import.meta.url), underTest, { connection, key })

  const count = Math.min(people.subjects - warmUp, Math.max(fewest, Math.ceil(rounds * seconds * perSecond)))
  const interactions: string[] = []
  const browser = createBrowser(site)
  for (let number = 0; number < warmUp + count; number++) {
    browser.clear()
    interactions.push((await begin(browser, site)).path.split('/').at(-1) ?? '')
  }
  browser.close()

  const idle: Wire[] = []
  const askedAt = new Map<string, number>()
  const answered: number[] = []
  const ask = async (interaction: string, number: number) => {
    const to = personOf(number + 1).identifier
    const query = new URLSearchParams({ interaction, to, ip: `10.0.${number >> 8}.${number & 255}` })
    const wire = idle.pop() ?? createWire(sender.port)
    const begun = performance.now()
    askedAt.set(to, performance.timeOrigin + begun)
    const { status, body } = await wire.send(
      `POST /?${query} HTTP/1.1\r\nhost: 127.0.0.1:${sender.port}\r\ncontent-length: 0\r\n\r\n`,
    )
    answered.push(performance.now() - begun)
    idle.push(wire)
    if (status !== 204) throw new Error(`no code was sent: ${status} ${body}`)
  }
  const begun = performance.now()
  const asking: Promise<void>[] = []
  for (const [number, interaction] of interactions.entries()) {
    const ahead = begun + (number * 1000) / perSecond - performance.now()
    if (ahead > 0) await delay(ahead)
    asking.push(ask(interaction, number))
  }
  await Promise.all(asking)
  const arrivals = await mail.process.call<Record<string, number>>('until', interactions.length)
  for (const wire of idle) wire.close()

  const measured = [...askedAt].slice(warmUp)
  const took = measured.map(([to, at]) => arrivals[to]! - at)
  const [p50, p99] = [percentile(took, 0.5), percentile(took, 0.99)]
  const answers = answered.slice(warmUp)
  return {
    tables: [
      [
        [`a code by mail, ${count} at ${perSecond} a second`, 'p50 ms', 'p99 ms', 'bar', ''],
        ['the answer', percentile(answers, 0.5).toFixed(1), percentile(answers, 0.99).toFixed(1), '', ''],
        [
          'the mail, at an SMTP server',
          p50.toFixed(1),
          p99.toFixed(1),
          `p99 ≤ ${atMostMs} ms`,
          verdict(p99 <= atMostMs),
        ],
      ],
    ],
    figures: { took, answers },
  }
}
