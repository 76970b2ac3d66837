import { deepStrictEqual, partialDeepStrictEqual } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import { createPasswordHasher } from '../../issuer/directory/users/password.ts'
import { createBrowser } from '../harness/browser.ts'
import type { Comparison, Contestant, Ratio } from '../harness/comparison.ts'
import { addDatabase, type Connection } from '../harness/database-store.ts'
import { measure, type Settings } from '../harness/measure.ts'
import { people } from '../harness/people.ts'
import { support, underTest } from '../harness/process.ts'
import { tablesOf } from '../harness/report.ts'
import { sendExpecting } from '../harness/send.ts'
import { authorize, redeem, type Site } from '../harness/sign-in-flow.ts'
import type { Stage } from '../harness/stage.ts'
import type { SignInPeerSettings } from '../peers/oidc-sign-in.ts'
import { seedSignInPeer } from '../peers/oidc-sign-in-seed-store.ts'
import type { SignInFloorSettings } from '../peers/sign-in-floor.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { startPostgres } from './issuer.ts'
import { measureCode } from './sign-in-code.ts'
import { measureEnds } from './sign-in-ends.ts'
import { measureFlows, type SigningIn } from './sign-in-flows.ts'
import { measurePage } from './sign-in-page.ts'
import { measurePages } from './sign-in-pages.ts'
import { measureProofs } from './sign-in-proofs.ts'
import { measureTiming } from './sign-in-timing.ts'
import { measureTransactions } from './sign-in-transactions.ts'
import {
  floorSiteOf,
  type Issuer,
  issuerOf,
  manager,
  password,
  personOf,
  refreshRequest,
  type SignInWorld,
  signInClient,
  signInScope,
  siteOf,
} from './sign-in-world.ts'

/**
 * People sign in: refresh tokens that rotate, whole sign-ins by password and by the session of the browser, beside
 * oidc-provider on one PostgreSQL with `fsync` on. And of ours alone: transactions of a sign-in, how long an ended
 * session still works at a gateway, the size of the pages and how soon they are painted, how soon a code arrives by
 * mail, what proofs cost, and whether the time of a refusal tells its reason.
 */
export const signIn: Comparison = {
  name: 'sign-in',
  title: 'People sign in: refresh with rotation, code flow by password and by session, on Postgres (fsync on)',
  // As many as the token requests of `issuer`, and for the same reason.
  connections: 64,
  async run(stage, settings, progress) {
    const postgres = await startPostgres(stage)
    const digest = (await createPasswordHasher().hash(password)).digest
    const peer = await preparePeer(stage, postgres, digest)
    const ours = await prepareOurs(stage, postgres, digest)
    const refreshed = await refresh(stage, settings, progress, [peer, ours])
    for (const issuer of [peer, ours]) await assertSignsIn(issuer)
    const floor = await prepareFloor(stage, postgres, digest)
    const flows = await measureFlows(stage, settings, progress, { peer, ours, floor, digest })
    progress('transactions')
    const transactions = await measureTransactions(stage, postgres, digest)
    progress('ends of sessions')
    const ends = await measureEnds(stage, ours)
    progress('page')
    const page = await measurePage(ours.site)
    progress('pages')
    const pages = await measurePages(stage, ours.site)
    progress('codes by mail')
    const code = await measureCode(stage, postgres, digest, settings)
    progress('proofs')
    const proofs = await measureProofs(stage, postgres, digest)
    progress('timing of refusals')
    const timing = await measureTiming(stage, postgres, digest)
    const parts = [flows, transactions, ends, page, pages, code, proofs, timing]
    return {
      tables: [...tablesOf(refreshed), ...parts.flatMap(({ tables }) => tables)],
      figures: {
        refresh: refreshed,
        flows: flows.figures,
        transactions: transactions.figures,
        ends: ends.figures,
        page: page.figures,
        pages: pages.figures,
        code: code.figures,
        proofs: proofs.figures,
        timing: timing.figures,
      },
    }
  },
}

const preparePeer = async (stage: Stage, postgres: Connection, digest: string): Promise<Issuer> => {
  // It makes its addresses from the header `host`, so this is a name only.
  const issuer = 'http://localhost:3001'
  const world = await seedSignInPeer(postgres, { issuer, digest })
  stage.onStop(world.close)
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const privateJwk = { ...(await exportJWK(privateKey)), kid: 'bench', alg: 'ES256', use: 'sig' }
  const settings: SignInPeerSettings = { connection: world.connection, privateJwk, issuer }
  const server = await stage.serve(new URL('../peers/oidc-sign-in.ts', import.meta.url), underTest, settings)
  return { name: 'oidc-provider', server, world, site: siteOf(server, world) }
}

const prepareOurs = async (stage: Stage, postgres: Connection, digest: string) => {
  const { mintRefreshTokens, ...seeded } = await seedSignIn(postgres, { digest, name: 'sign_in' })
  stage.onStop(seeded.close)
  const server = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), underTest, {
    connection: seeded.connection,
    bootstrap: manager,
  })
  const world = { ...seeded, mintRefreshTokens, issuer: await issuerOf(server) }
  return { name: 'Surrogate', server, world, site: siteOf(server, world) }
}

const prepareFloor = async (stage: Stage, postgres: Connection, digest: string): Promise<SigningIn> => {
  const { redirectUri } = signInClient
  const settings: SignInFloorSettings = {
    connection: await addDatabase(postgres, 'sign_in_floor'),
    digest,
    redirectUri,
  }
  const server = await stage.serve(new URL('../peers/sign-in-floor.ts', import.meta.url), underTest, settings)
  return { name: 'the floor', server, site: floorSiteOf(server) }
}

const refreshRatios: Ratio[] = [{ of: 'oidc-provider, refresh', to: 'Surrogate, refresh', atLeast: 2 }]

const refresh = async (
  stage: Stage,
  settings: Settings,
  progress: (line: string) => void,
  issuers: readonly Issuer[],
) => {
  const { process: generator } = await stage.start(new URL('../harness/load-generator.ts', import.meta.url), support)
  const prepared = { contestants: issuers.map(refreshContestant), ratios: refreshRatios }
  return measure({ prepared, generator, progress, ...settings })
}

const refreshContestant = ({ name, server, world, site }: Issuer): Contestant => {
  const request = (token: string) => refreshRequest(site, token)
  return {
    name: `${name}, refresh`,
    server,
    once: true,
    requests: async (count) => {
      const users = Array.from({ length: count }, () => 1 + Math.floor(Math.random() * people.subjects))
      return (await world.mintRefreshTokens(users)).map(request)
    },
    expected: { status: 200, bodyIncludes: '"id_token"' },
    preflight: async () => {
      const [token = '', other = ''] = await world.mintRefreshTokens([1, 2])
      await sendExpecting(server.port, request('unknown'), 400)
      const stranger = { ...site, client: { ...site.client, id: 'somebody-else' } }
      await sendExpecting(server.port, refreshRequest(stranger, token), 400, 401)
      const first = JSON.parse(await sendExpecting(server.port, request(token), 200))
      await assertTokens(world, site, first, {})
      await world.endLeeway(token)
      await sendExpecting(server.port, request(token), 400)
      // Whoever of the two was the thief: neither has anything any more.
      await sendExpecting(server.port, request(first.refresh_token), 400)
      await sendExpecting(server.port, request(other), 200)
    },
  }
}

/** Both tokens carry good signatures and tell the same of the first user, whoever made them. */
const assertTokens = async (
  { issuer, paths }: SignInWorld,
  { port, client, resource }: Site,
  answer: { access_token: string; id_token: string; refresh_token: string; scope: string },
  idClaims: object,
): Promise<void> => {
  const keys = createRemoteJWKSet(new URL(`http://127.0.0.1:${port}${paths.jwks}`))
  const id = await jwtVerify(answer.id_token, keys, { issuer, audience: client.id, algorithms: ['ES256'] })
  const access = await jwtVerify(answer.access_token, keys, { issuer, audience: resource, algorithms: ['ES256'] })
  partialDeepStrictEqual(id.payload, { email: '1@example.test', email_verified: true, name: 'User 1', ...idClaims })
  for (const claim of ['auth_time', 'created_at', 'updated_at']) {
    if (id.payload[claim] === undefined) throw new Error(`the ID token has no ${claim}`)
  }
  deepStrictEqual(access.payload.sub, id.payload.sub)
  partialDeepStrictEqual(access.payload, { client_id: client.id, scope: signInScope.resource.join(' ') })
  partialDeepStrictEqual(access.protectedHeader, { typ: 'at+jwt' })
  if (!answer.refresh_token) throw new Error('there is no refresh token')
}

/** Who skips a check must not win: a wrong password, a wrong verifier, a code for the second time. */
const assertSignsIn = async ({ world, site }: Issuer): Promise<void> => {
  const browser = createBrowser(site)
  const isRefused = await authorize(browser, site, { ...personOf(1), password: 'wrong password' }).then(
    () => false,
    () => true,
  )
  if (!isRefused) throw new Error('a wrong password leads to a code')
  browser.clear()
  const authorized = await authorize(browser, site, personOf(1))
  const wrong = await redeem(browser, site, { ...authorized, verifier: randomBytes(32).toString('base64url') })
  const again = await authorize(browser, site)
  const right = await redeem(browser, site, again)
  const replayed = await redeem(browser, site, again)
  browser.close()
  const answers = [wrong, right, replayed]
  deepStrictEqual(
    answers.map(({ status }) => status),
    [400, 200, 400],
    answers.map(({ body }) => body).join('\n'),
  )
  await assertTokens(world, site, JSON.parse(right.body), { nonce: again.nonce })
}
