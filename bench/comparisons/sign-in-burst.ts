import { setTimeout as delay } from 'node:timers/promises'
import { createPasswordHasher } from '../../issuer/directory/users/password.ts'
import type { Answered, Burst } from '../harness/burst-driver.ts'
import type { Comparison, Page } from '../harness/comparison.ts'
import type { HashingLoad } from '../harness/hashing-load.ts'
import { people } from '../harness/people.ts'
import { percentile } from '../harness/percentiles.ts'
import { everywhere, support } from '../harness/process.ts'
import { sendExpecting } from '../harness/send.ts'
import type { Site } from '../harness/sign-in-flow.ts'
import type { Server, Stage } from '../harness/stage.ts'
import type { Phases, Steady } from '../harness/steady-load.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { startPostgres } from './issuer.ts'
import { warmUpSignIns } from './sign-in-flows.ts'
import { issuerOf, password, personOf, signInScope, siteOf, verdict } from './sign-in-world.ts'

/** At once. The second is more than may wait: the rest has to be told when to come back. */
const burst = 500
const tooMany = people.subjects
const atMost = 2
const perSecond = 100
/** Of a quiet phase, for the sake of its 99th percentile. */
const quietSeconds = 10

const phases = { before: 'before', hashing: 'beside hashing alone', during: 'during', after: 'after' } as const

/**
 * Token requests of a machine at a steady rate, before, while and after many people send their passwords in one moment:
 * what hashing leaves to the others. The issuer has both CPUs, as its threads are what is measured. Between them the
 * same passwords are hashed by another process, at the same priority and as many at a time, and nobody signs in: what
 * nothing that an issuer does could take away.
 */
export const signInBurst: Comparison = {
  name: 'sign-in-burst',
  title: 'Many passwords at once, beside token requests at a steady rate, on Postgres (fsync on)',
  run: async (stage, { seconds }) => measureBurst(stage, seconds),
}

const measureBurst = async (stage: Stage, seconds: number): Promise<Page> => {
  const postgres = await startPostgres(stage)
  const { digest } = await createPasswordHasher().hash(password)
  const seeded = await seedSignIn(postgres, { digest, name: 'sign_in_burst' })
  stage.onStop(seeded.close)
  const server = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), everywhere, {
    connection: seeded.connection,
    trustedProxies: ['127.0.0.1'],
  })
  const site = siteOf(server, { ...seeded, issuer: await issuerOf(server) })
  const request = clientCredentials(server, site, seeded.machine)
  await sendExpecting(server.port, request, 200)
  const { process: hashing } = await stage.start(new URL('../harness/hashing-load.ts', import.meta.url), everywhere)
  const { process: steady } = await stage.start(new URL('../harness/steady-load.ts', import.meta.url), support)
  const { process: driver } = await stage.start(new URL('../harness/burst-driver.ts', import.meta.url), support)
  const phaseSeconds = Math.max(quietSeconds, seconds * 2)
  const quiet = () => delay(phaseSeconds * 1_000)
  const asBurst = (count: number): Burst => ({
    site,
    people: Array.from({ length: count }, (_, index) => personOf(index + 1)),
  })

  const load: Steady = { port: server.port, perSecond, request, bodyIncludes: '"access_token"' }
  await steady.call('phase', 'warm-up')
  await steady.call('begin', load)
  // V8 compiles what it has seen often; an issuer that people come to has seen them.
  for (let signIns = 0; signIns < warmUpSignIns; signIns += burst) {
    await driver.call('prepare', asBurst(burst))
    await driver.call('run')
  }
  await driver.call('prepare', asBurst(burst))
  await delay(2_000)
  await steady.call('phase', phases.before)
  await quiet()
  await steady.call('phase', phases.hashing)
  await hashing.call<number>('run', {
    password,
    digest: { digest, algorithm: 'Argon2id' },
    seconds: phaseSeconds,
  } satisfies HashingLoad)
  await steady.call('phase', phases.during)
  const answers = await driver.call<Answered[]>('run')
  await steady.call('phase', phases.after)
  await quiet()
  const measured = await steady.call<Phases>('end')
  await driver.call('prepare', asBurst(tooMany))
  const crowd = await driver.call<Answered[]>('run')
  return page({ measured, answers, crowd })
}

const page = ({ measured, answers, crowd }: { measured: Phases; answers: Answered[]; crowd: Answered[] }): Page => {
  const at = (phase: string, share: number) => percentile(measured[phase]?.latencies ?? [], share)
  const failures = Object.values(measured).flatMap((one) => one.failures)
  const ratio = at(phases.during, 0.99) / at(phases.before, 0.99)
  const floor = at(phases.hashing, 0.99) / at(phases.before, 0.99)
  const settled = at(phases.after, 0.99) / at(phases.before, 0.99)
  const rows = Object.values(phases).map((phase) => [
    `${phase}, ${measured[phase]?.latencies.length} token requests`,
    at(phase, 0.5).toFixed(1),
    at(phase, 0.99).toFixed(1),
    '',
    '',
  ])
  return {
    tables: [
      [
        [`client_credentials, ${perSecond} a second, beside ${burst} passwords at once`, 'p50 ms', 'p99 ms', 'bar', ''],
        ...rows,
        ['during / before', '', `${ratio.toFixed(2)} ×`, `< ${atMost} ×`, verdict(ratio < atMost)],
        ['beside hashing alone / before', '', `${floor.toFixed(2)} ×`, '', ''],
        ['after / before', '', `${settled.toFixed(2)} ×`, '', ''],
        ['token requests without a token', '', String(failures.length), '0', verdict(failures.length === 0)],
      ],
      [
        ['passwords at once', 'signed in', '503 with Retry-After', 'anything else', 'p50 s', 'longest s', 'bar', ''],
        crowdRow(answers),
        crowdRow(crowd),
      ],
    ],
    figures: { measured, answers, crowd },
  }
}

/** Everybody gets in, or is told when to come back. */
const crowdRow = (answers: Answered[]): string[] => {
  const signedIn = answers.filter(({ outcome }) => outcome === 'signed in')
  const sentAway = answers.filter(({ outcome, retryAfter }) => outcome === '503' && Number(retryAfter) > 0)
  const others = answers.length - signedIn.length - sentAway.length
  const seconds = signedIn.map(({ ms }) => ms / 1_000)
  return [
    String(answers.length),
    String(signedIn.length),
    String(sentAway.length),
    String(others),
    percentile(seconds, 0.5).toFixed(1),
    Math.max(...seconds).toFixed(1),
    '0 of anything else',
    verdict(others === 0),
  ]
}

const clientCredentials = ({ port }: Server, { paths, resource }: Site, machine: { id: string; secret: string }) => {
  const scope = signInScope.resource.join(' ')
  const body = new URLSearchParams({ grant_type: 'client_credentials', resource, scope }).toString()
  return [
    `POST ${paths.token} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    'accept: application/json',
    `authorization: Basic ${Buffer.from(`${machine.id}:${machine.secret}`).toString('base64')}`,
    'content-type: application/x-www-form-urlencoded',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}
