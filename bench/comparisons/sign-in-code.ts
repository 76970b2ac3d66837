import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Browser, createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import type { Connection } from '../harness/database-store.ts'
import type { Settings } from '../harness/measure.ts'
import { people } from '../harness/people.ts'
import { percentile } from '../harness/percentiles.ts'
import { support, underTest } from '../harness/process.ts'
import { sendExpecting } from '../harness/send.ts'
import { begin } from '../harness/sign-in-flow.ts'
import type { Server, Stage } from '../harness/stage.ts'
import { seedMail } from '../targets/mail-seed-store.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { managementToken } from './management.ts'
import { issuerOf, manager, personOf, siteOf, verdict } from './sign-in-world.ts'

const atMostMs = 200
const perSecond = 20
/** For the sake of the 99th percentile. Everybody asks once: there are limits for each recipient. */
const fewest = 400
const warmUp = 50

/**
 * From asking for a code over the Experience API to the arrival of the mail at an SMTP server, in an open loop. The
 * issuer, the relay and the SMTP server are processes of their own.
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
  const issuer = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), underTest, {
    ...{ connection, key },
    bootstrap: manager,
    trustedProxies: ['127.0.0.1'],
  })
  await allowCodes(issuer)
  const site = siteOf(issuer, { ...seeded, issuer: await issuerOf(issuer) })
  await stage.start(new URL('../targets/relay.ts', import.meta.url), underTest, { connection, key })

  const count = Math.min(people.subjects - warmUp, Math.max(fewest, Math.ceil(rounds * seconds * perSecond)))
  const asked: { browser: Browser; interaction: string; to: string }[] = []
  for (let number = 0; number < warmUp + count; number++) {
    const browser = createBrowser({ ...site, address: `10.0.${number >> 8}.${number & 255}` })
    const { path } = await begin(browser, site)
    asked.push({ browser, interaction: path.split('/').at(-1) ?? '', to: personOf(number + 1).identifier })
  }

  const askedAt = new Map<string, number>()
  const answered: number[] = []
  const ask = async ({ browser, interaction, to }: (typeof asked)[number]) => {
    const started = performance.now()
    askedAt.set(to, performance.timeOrigin + started)
    const { status, body } = await browser.send(
      '/api/experience/verification/verification-code',
      { identifier: { type: 'email', value: to }, interactionEvent: 'SignIn' },
      [`surrogate-interaction: ${interaction}`],
    )
    answered.push(performance.now() - started)
    if (status !== 200) throw new Error(`no code was sent: ${status} ${body}`)
  }
  const begun = performance.now()
  const asking: Promise<void>[] = []
  for (const [number, one] of asked.entries()) {
    const ahead = begun + (number * 1000) / perSecond - performance.now()
    if (ahead > 0) await delay(ahead)
    asking.push(ask(one))
  }
  await Promise.all(asking)
  const arrivals = await mail.process.call<Record<string, number>>('until', asked.length)
  for (const { browser } of asked) browser.close()

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

const allowCodes = async (server: Server): Promise<void> => {
  const byPassword = { password: true, isPasswordPrimary: true }
  const methods = [
    { ...byPassword, identifier: 'username', verificationCode: false },
    { ...byPassword, identifier: 'email', verificationCode: true },
  ]
  const body = JSON.stringify({ signIn: { methods } })
  const request = [
    'PATCH /api/sign-in-exp HTTP/1.1',
    `host: 127.0.0.1:${server.port}`,
    `authorization: Bearer ${await managementToken(server, manager)}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    '',
    body,
  ]
  await sendExpecting(server.port, request.join('\r\n'), 200)
}
