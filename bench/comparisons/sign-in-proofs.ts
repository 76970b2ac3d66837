import { randomBytes } from 'node:crypto'
import { createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import type { Connection } from '../harness/database-store.ts'
import { support, underTest } from '../harness/process.ts'
import { begin } from '../harness/sign-in-flow.ts'
import type { Stage } from '../harness/stage.ts'
import type { ProviderAddress } from '../targets/identity-provider.ts'
import type { ProofCost, ProofSettings } from '../targets/proof-costs.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { issuerOf, personOf, siteOf, verdict } from './sign-in-world.ts'

/** Of the two rows about identity providers together: what an issuer does for one sign-in. */
const federationBarMicros = 3_000

/** What it costs to verify each thing that people prove themselves with, and to say what comes next. One at a time. */
export const measureProofs = async (stage: Stage, postgres: Connection, digest: string): Promise<Page> => {
  const key = randomBytes(32).toString('hex')
  const seeded = await seedSignIn(postgres, { digest, name: 'sign_in_proofs' })
  stage.onStop(seeded.close)
  const { connection } = seeded
  const issuer = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), support, { connection, key })
  const site = siteOf(issuer, { ...seeded, issuer: await issuerOf(issuer) })
  const browser = createBrowser(site)
  const { path } = await begin(browser, site)
  browser.close()
  const { process: provider } = await stage.start(new URL('../targets/identity-provider.ts', import.meta.url), support)
  const settings: ProofSettings = {
    provider: await provider.call<ProviderAddress>('address'),
    ...{ connection, key, baseUrl: site.origin },
    userId: (await seeded.sessionOf(1)).userId,
    email: personOf(1).identifier,
    interactionId: path.split('/').at(-1) ?? '',
  }
  const { process } = await stage.start(new URL('../targets/proof-costs.ts', import.meta.url), underTest, settings)
  const costs = await process.call<ProofCost[]>('measure')
  const federated = costs
    .filter(({ name }) => name.startsWith('identity provider'))
    .reduce((sum, { cpuMicros }) => sum + cpuMicros, 0)
  return {
    tables: [
      [
        ['to verify', 'p50 µs', 'CPU µs'],
        ...costs.map(({ name, micros, cpuMicros }) => [name, micros.toFixed(0), cpuMicros.toFixed(0)]),
      ],
      [
        ['a sign-in by an identity provider, its two requests', 'CPU µs', 'bar', ''],
        ['together', federated.toFixed(0), `≤ ${federationBarMicros}`, verdict(federated <= federationBarMicros)],
      ],
    ],
    figures: costs,
  }
}
