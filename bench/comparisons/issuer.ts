import { partialDeepStrictEqual } from 'node:assert/strict'
import { exportJWK, generateKeyPair } from 'jose'
import type { Comparison, Contestant, Prepared } from '../harness/comparison.ts'
import type { Connection } from '../harness/database-store.ts'
import type { Actor } from '../harness/people.ts'
import { support, underTest } from '../harness/process.ts'
import { sendExpecting } from '../harness/send.ts'
import type { Server, Stage } from '../harness/stage.ts'
import type { IssuerSettings } from '../peers/oidc-issuer.ts'
import { seedPeer } from '../peers/oidc-seed-store.ts'
import { seedSurrogate } from '../targets/issuer-seed-store.ts'

/**
 * `client_credentials`, and token exchange (impersonation, with an actor token), on one PostgreSQL with `fsync` on.
 * Each issuer has a database with the same in it: a resource with two permissions, a role that carries them, a client
 * and 1 000 users that have the role, and 100 users who act.
 */
export const issuer: Comparison = {
  name: 'issuer',
  title: 'Issuer on Postgres (fsync on), ES256 JWT access tokens',
  // PostgreSQL and the load share a CPU. With fewer the issuers mostly wait for it, and what is measured is what waking
  // up costs.
  connections: 64,
  prepare: async (stage) => ({ contestants: await prepareIssuers(stage), ratios }),
}

/** The same with as few requests at a time as the other comparisons have: what an issuer costs that mostly waits. */
export const issuerFew: Comparison = {
  name: 'issuer-few',
  title: 'Issuer, 16 requests at a time',
  prepare: async (stage) => ({
    contestants: await prepareIssuers(stage),
    ratios: ratios.map(({ of, to }) => ({ of, to })),
  }),
}

const prepareIssuers = async (stage: Stage): Promise<Contestant[]> => {
  const postgres = await startPostgres(stage)
  return [...(await preparePeer(stage, postgres)), ...(await prepareOurs(stage, postgres))]
}

/** What the comparison needs of an issuer, whoever wrote it. */
export type IssuerWorld = {
  tokenPath: string
  client: { id: string; secret: string }
  resource: string
  /** Users who act, each with an opaque access token of theirs with scope `openid`. */
  actors: readonly Actor[]
  /** Fresh single-use subject tokens, minted outside the measured window. */
  mintSubjectTokens: (count: number) => Promise<string[]>
}

export type SeededIssuer = IssuerWorld & { connection: Connection; close: () => Promise<void> }

const ratios: Prepared['ratios'] = [
  { of: 'oidc-provider, client_credentials', to: 'Surrogate, client_credentials', atLeast: 2.5 },
  { of: 'Surrogate, token exchange', to: 'Surrogate, client_credentials', atMost: 2 },
  { of: 'oidc-provider, token exchange', to: 'Surrogate, token exchange', atLeast: 2.5 },
]

export const startPostgres = async (stage: Stage): Promise<Connection> =>
  (await stage.start<Connection>(new URL('../harness/postgres.ts', import.meta.url), support)).result

const preparePeer = async (stage: Stage, postgres: Connection): Promise<Contestant[]> => {
  const { connection, close, ...world } = await seedPeer(postgres)
  stage.onStop(close)
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const privateJwk = { ...(await exportJWK(privateKey)), kid: 'bench', alg: 'ES256', use: 'sig' }
  const settings: IssuerSettings = { connection, privateJwk }
  const server = await stage.serve(new URL('../peers/oidc-issuer.ts', import.meta.url), underTest, settings)
  return tokenContestants('oidc-provider', server, world)
}

const prepareOurs = async (stage: Stage, postgres: Connection): Promise<Contestant[]> => {
  const { connection, close, ...world } = await seedSurrogate(postgres)
  stage.onStop(close)
  const server = await serveIssuer(stage, connection)
  return tokenContestants('Surrogate', server, world)
}

export const serveIssuer = (stage: Stage, connection: Connection): Promise<Server> =>
  stage.serve(new URL('../targets/issuer.ts', import.meta.url), underTest, { connection })

const scope = 'read:orders write:orders'
const expected = { status: 200, bodyIncludes: `"scope":"${scope}"` }
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

/** One server as two contestants: `<name>, client_credentials` and `<name>, token exchange`. */
export const tokenContestants = (name: string, server: Server, world: IssuerWorld): Contestant[] => {
  const request = (form: Record<string, string>) =>
    tokenRequest({ scope, resource: world.resource, ...form }, server, world)
  const clientCredentials = request({ grant_type: 'client_credentials' })
  const exchange = (subjectToken: string, actorToken = world.actors[0]!.token) =>
    request({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      client_id: world.client.id,
      subject_token: subjectToken,
      subject_token_type: accessTokenType,
      actor_token: actorToken,
      actor_token_type: accessTokenType,
    })
  return [
    {
      name: `${name}, client_credentials`,
      server,
      requests: () => [clientCredentials],
      expected,
      preflight: async () => {
        const stranger = { ...world, client: { ...world.client, secret: 'x'.repeat(43) } }
        await sendExpecting(server.port, tokenRequest({ grant_type: 'client_credentials' }, server, stranger), 401)
        await sendExpecting(server.port, request({ grant_type: 'client_credentials', scope: 'read:order' }), 400)
        assertAccessToken(await sendExpecting(server.port, clientCredentials, 200), { aud: world.resource, scope })
      },
    },
    {
      name: `${name}, token exchange`,
      server,
      requests: async (count) =>
        (await world.mintSubjectTokens(count)).map((token, n) =>
          exchange(token, world.actors[n % world.actors.length]!.token),
        ),
      once: true,
      expected,
      preflight: async () => {
        const [token = ''] = await world.mintSubjectTokens(1)
        await sendExpecting(server.port, exchange('sub_unknown'), 400)
        await sendExpecting(server.port, exchange(token, 'unknown'), 400)
        const first = await sendExpecting(server.port, exchange(token), 200)
        assertAccessToken(first, { aud: world.resource, scope, act: { sub: world.actors[0]!.id } })
        await sendExpecting(server.port, exchange(token), 400)
      },
    },
  ]
}

const assertAccessToken = (answer: string, expectedClaims: object): void => {
  const [header = '', payload = ''] = JSON.parse(answer).access_token.split('.')
  const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  partialDeepStrictEqual(decode(header), { alg: 'ES256', typ: 'at+jwt' })
  partialDeepStrictEqual(decode(payload), expectedClaims)
}

const tokenRequest = (form: Record<string, string>, { port }: Server, { client, tokenPath }: IssuerWorld): string => {
  const body = new URLSearchParams(form).toString()
  return [
    `POST ${tokenPath} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    'accept: application/json',
    `authorization: Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`,
    'content-type: application/x-www-form-urlencoded',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}
