import { randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { createPostgresBus } from '../../events/postgres-bus.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { silentLogger } from '../../platform/logger.ts'
import type { RelayConfig } from '../../relay/config.ts'
import { type AuthorizationOptions, authorize } from './authorizations.ts'
import { createCodeFlow, type Person, signedOut } from './code-flow.ts'
import { createTestDatabase } from './database.ts'
import { formOf, startTestIssuer } from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'
import { startProcess } from './process.ts'
import { startTestRelay, testRelayConfig } from './relay.ts'

/** A logout token that an application was sent. */
export interface ReceivedLogout {
  path: string
  headers: IncomingHttpHeaders
  token: string
  header: { typ?: string | undefined; alg?: string | undefined }
  claims: Record<string, unknown>
}

/** `count`: how many came to this path, this one included. */
export type LogoutAnswer = (received: ReceivedLogout, response: ServerResponse, count: number) => void

const accepted: LogoutAnswer = (_received, response) => void response.writeHead(200).end()

/** Applications that are told of logouts, each at a path of its own. */
export const startLogoutReceiver = async (answer: LogoutAnswer = accepted) => {
  const received: ReceivedLogout[] = []
  const current = { answer }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const token = new URLSearchParams(body).get('logout_token') ?? ''
      const path = request.url ?? ''
      const one = {
        path,
        headers: request.headers,
        token,
        header: decodeProtectedHeader(token),
        claims: decodeJwt(token),
      }
      received.push(one)
      current.answer(one, response, received.filter((other) => other.path === path).length)
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    answerWith(next: LogoutAnswer) {
      current.answer = next
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}

export const backChannelRelay: RelayConfig = {
  ...testRelayConfig,
  logoutRetrySchedule: [20, 20, 20],
  logoutLeaseMs: 6_000,
}

/** Where relays run that are to be killed. */
const script = fileURLToPath(new URL('./relay-process.ts', import.meta.url))

/** An issuer, and relays that may send to this machine; a person who signs in and out through HTTP. */
export const startBackChannel = async () => {
  const key = randomBytes(32)
  const test = await createTestDatabase()
  const issuer = await startTestIssuer({
    test,
    config: { keyEncryptionKey: key, webhookTargets: { allowedNetworks: ['127.0.0.0/8'], allowHttp: true } },
  })
  const flow = createCodeFlow(issuer)
  const { database } = issuer
  const keys = createRemoteJWKSet(new URL(`${issuer.issuer}/jwks`))
  const closers: (() => Promise<unknown>)[] = []
  const laterClosed = <Part extends { close(): Promise<unknown> }>(part: Part): Part => {
    closers.push(part.close)
    return part
  }

  return {
    issuer,
    flow,
    receiver: async (answer?: LogoutAnswer) => laterClosed(await startLogoutReceiver(answer)),
    async relay(config: Partial<RelayConfig> = {}) {
      const bus = createPostgresBus({ database, logger: silentLogger })
      const relay = await startTestRelay({
        ...{ database, bus, envelope: createEnvelope({ current: key }) },
        config: { ...backChannelRelay, ...config },
      })
      return laterClosed({
        async close() {
          await relay.close()
          await bus.close()
        },
      })
    },
    async relayProcess(config: Partial<RelayConfig> = {}) {
      const options = {
        connection: test.connection,
        key: key.toString('hex'),
        config: { ...backChannelRelay, ...config },
      }
      const relay = startProcess(process.execPath, [script, JSON.stringify(options)], { cwd: process.cwd() })
      closers.push(async () => {
        relay.signal('SIGKILL')
        await relay.exited
      })
      await relay.waitFor(/started/)
      return relay
    },
    /** Registers an application that is told at `uri`. */
    async client(uri: string | undefined, more: object = {}): Promise<TestApplication> {
      const client = await flow.createClient({ type: 'Traditional' })
      await issuer.sql(`UPDATE applications SET oidc_client_metadata = oidc_client_metadata || $2 WHERE id = $1`, [
        client.id,
        JSON.stringify({ ...(uri !== undefined && { backchannelLogoutUri: uri }), ...more }),
      ])
      return client
    },
    /** A person signs in at the first of these applications, and by that at the others. */
    async signIn(clients: readonly TestApplication[], options: AuthorizationOptions = {}) {
      const [first, ...others] = clients as [TestApplication, ...TestApplication[]]
      const person: Person = await flow.createPerson()
      const browser = flow.browser()
      const { body } = await flow.redeem(first, await flow.signIn(browser, first, person, { scope: 'openid' }))
      const { sid } = decodeJwt(body.id_token)
      const [row] = await issuer.sql<{ session_id: string }>('SELECT session_id FROM authorizations WHERE id = $1', [
        sid,
      ])
      const sids = [String(sid)]
      for (const client of others) {
        const made = await authorize(issuer, client, person.id, {
          ...{ sessionId: row!.session_id, isOffline: false, ...options },
        })
        const { status } = await made.redeem()
        if (status !== 200) throw new Error(`the code was not redeemed: ${status}`)
        sids.push(made.sid)
      }
      return { person, browser, idToken: body.id_token as string, sids, sessionId: row!.session_id }
    },
    /** The request of the first application, with its ID token: the person is not asked. */
    signOut: (browser: ReturnType<typeof flow.browser>, idToken: string) =>
      browser.get(
        `${issuer.baseUrl}/oidc/session/end?${formOf({ id_token_hint: idToken, post_logout_redirect_uri: signedOut })}`,
      ),
    /** As an application must check a logout token (Back-Channel Logout §2.6). */
    async verify(token: string, { id }: TestApplication) {
      const { payload } = await jwtVerify(token, keys, { issuer: issuer.issuer, audience: id, typ: 'logout+jwt' })
      return payload
    },
    deliveries: () =>
      issuer.sql<{ sid: string; state: string; attempts: number; error: string | null; sealed: Buffer | null }>(
        'SELECT authorization_id AS sid, state, attempts, error, sealed FROM logout_deliveries ORDER BY created_at, sid',
      ),
    /** As if the time had passed in which they are tried. */
    expire: () =>
      issuer.sql(`UPDATE logout_deliveries SET expires_at = now(), next_attempt_at = now() WHERE state = 'waiting'`),
    async close() {
      for (const close of closers.toReversed()) await close()
      await issuer.close()
    },
  }
}

export type BackChannel = Awaited<ReturnType<typeof startBackChannel>>
