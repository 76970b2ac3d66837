import { setTimeout as delay } from 'node:timers/promises'
import { createAsker } from '../harness/ask.ts'
import type { Page } from '../harness/comparison.ts'
import { people } from '../harness/people.ts'
import { support } from '../harness/process.ts'
import { send, sendExpecting } from '../harness/send.ts'
import type { Stage } from '../harness/stage.ts'
import type { GatewayTargetSettings } from '../targets/gateway.ts'
import { type OurSignInWorld, sessionsToEnd } from '../targets/sign-in-seed-store.ts'
import { bundle } from './gateway.ts'
import { managementToken } from './management.ts'
import { type Issuer, manager, refreshRequest, type SignInWorld, verdict } from './sign-in-world.ts'

const atMostMs = 1_000
/** A gateway that has not heard of it by then never will. */
const giveUpMs = 30_000
/** So that the asking leaves the processors to those who are asked. */
const askEveryMs = 2

/**
 * How long the access token of a session that is ended by the Management API still opens a gateway: from sending the
 * request that ends it, to the first refusal. The gateway is asked again and again, one request at a time.
 */
export const measureEnds = async (
  stage: Stage,
  { server, world, site }: Issuer<SignInWorld & Pick<OurSignInWorld, 'sessionOf'>>,
): Promise<Page> => {
  const upstream = await stage.serve(new URL('../peers/upstream.ts', import.meta.url), support, {
    jwks: { keys: [] },
    postBytes: 0,
  })
  const settings: GatewayTargetSettings = {
    upstream: `http://127.0.0.1:${upstream.port}`,
    issuer: world.issuer,
    audience: world.resource,
    bundle,
    feedClient: manager,
  }
  const gateway = await stage.serve(new URL('../targets/gateway.ts', import.meta.url), support, settings)
  const asker = createAsker(gateway.port)
  const management = await managementToken(server, manager)
  const took: { sent: number; answered: number }[] = []
  for (let session = people.subjects + 1; session <= people.subjects + sessionsToEnd; session++) {
    const { userId, sessionId } = await world.sessionOf(session)
    const [refreshToken = ''] = await world.mintRefreshTokens([session])
    const tokens = await sendExpecting(server.port, refreshRequest(site, refreshToken), 200)
    const authorization = `authorization: Bearer ${JSON.parse(tokens).access_token}\r\n`
    const ask = () => asker.ask('/orders/42', authorization)
    const before = await ask()
    if (before !== 200) throw new Error(`the gateway answers ${before} before the session is ended`)

    const end = [
      `DELETE /api/users/${userId}/sessions/${sessionId} HTTP/1.1`,
      `host: 127.0.0.1:${server.port}`,
      `authorization: Bearer ${management}`,
      '',
      '',
    ].join('\r\n')
    const begun = performance.now()
    const ended = send(server.port, end).then((answer) => ({ ...answer, at: performance.now() }))
    while ((await ask()) === 200) {
      if (performance.now() - begun > giveUpMs) throw new Error('the gateway never refuses the token')
      await delay(askEveryMs)
    }
    const refused = performance.now()
    const { status, body, at } = await ended
    took.push({ sent: refused - begun, answered: refused - at })
    if (status !== 204) throw new Error(`the session was not ended: ${status} ${body}`)
    const after = await ask()
    if (after !== 401) throw new Error(`the gateway answers ${after} after the session was ended`)
  }
  asker.close()
  const fromSent = percentiles(took.map(({ sent }) => sent))
  const fromAnswer = percentiles(took.map(({ answered }) => answered))
  return {
    tables: [
      [
        [`end of a session → refusal at the gateway, ${sessionsToEnd} sessions`, 'p50 ms', 'p99 ms', 'bar', ''],
        ['from sending the request', ...fromSent.shown, `≤ ${atMostMs} ms`, verdict(fromSent.p99 <= atMostMs)],
        ['from its answer', ...fromAnswer.shown, '', ''],
      ],
    ],
    figures: took,
  }
}

const percentiles = (values: number[]) => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  return { p99: at(0.99), shown: [at(0.5).toFixed(1), at(0.99).toFixed(1)] }
}
