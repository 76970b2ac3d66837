import { setTimeout as delay } from 'node:timers/promises'
import { createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import { percentile } from '../harness/percentiles.ts'
import { underTest } from '../harness/process.ts'
import { authorize } from '../harness/sign-in-flow.ts'
import type { Server } from '../harness/stage.ts'
import { newKey, seedAsking } from '../targets/people-seed-store.ts'
import { seedSignIn } from '../targets/sign-in-seed-store.ts'
import { managementToken } from './management.ts'
import { callApi, type PeopleWorld } from './people-world.ts'
import { issuerOf, manager, password, personOf, signInClient, siteOf, verdict } from './sign-in-world.ts'

const atMostMs = 1_000
/** How often a backend that takes no webhook looks whether the customer has agreed. */
const askEveryMs = 100
const perRound = 5

/**
 * From the moment in which a customer sends their approval to the first access token with which support acts: the
 * backend repeats its request until it is approved, and the application exchanges the subject token.
 */
export const measureApproval = async ({ stage, postgres, digest, rounds }: PeopleWorld): Promise<Page> => {
  const seeded = await seedSignIn(postgres, { digest, name: 'people_approval' })
  stage.onStop(seeded.close)
  const { connection, machine, resource } = seeded
  await seedAsking(connection)
  const issuer = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), underTest, {
    ...{ connection, key: newKey(), bootstrap: manager, asksFirst: true },
  })
  const site = siteOf(issuer, { ...seeded, issuer: await issuerOf(issuer) })
  const backend = await managementToken(issuer, manager)

  /** An opaque token of the customer, as their application has it for the Account API. */
  const accountToken = async (number: number): Promise<string> => {
    const browser = createBrowser(site)
    const { code, verifier } = await authorize(browser, site, personOf(number))
    const answer = await browser.call(site.paths.token, {
      ...{ grant_type: 'authorization_code', client_id: signInClient.id, code, code_verifier: verifier },
      redirect_uri: signInClient.redirectUri,
    })
    browser.close()
    return JSON.parse(answer.body).access_token
  }

  const measure = async (number: number): Promise<number> => {
    const token = await accountToken(number)
    const { userId } = await seeded.sessionOf(number)
    const asked = await callApi(issuer, 'POST', '/subject-tokens', { token: backend, body: { userId } })
    if (asked.status !== 202) throw new Error(`the customer was not asked: ${asked.status}`)
    const { requestId, number: shown } = asked.body
    const { body } = await callApi(issuer, 'POST', '/verifications/password', { token, body: { password } })
    let first = Number.NaN
    const acting = waitForToken(issuer, { requestId, backend, machine, resource }).then(() => {
      first = performance.now()
    })
    const begun = performance.now()
    await callApi(issuer, 'POST', `/my-account/impersonation-requests/${requestId}/approve`, {
      ...{ token, body: { number: shown } },
      headers: [`logto-verification-id: ${body['verificationRecordId']}`],
    })
    await acting
    return first - begun
  }

  const took: number[] = []
  const count = perRound * rounds
  for (let number = 1; number <= perRound + count; number++) {
    const ms = await measure(number)
    if (number > perRound) took.push(ms)
  }
  const longest = Math.max(...took)
  return {
    tables: [
      [
        [
          `approval → first token, ${count} times, a backend that asks every ${askEveryMs} ms`,
          'p50 ms',
          'longest ms',
          'bar',
          '',
        ],
        [
          'from sending the approval',
          percentile(took, 0.5).toFixed(1),
          longest.toFixed(1),
          `≤ ${atMostMs} ms`,
          verdict(longest <= atMostMs),
        ],
      ],
    ],
    figures: took,
  }
}

/** As a backend that waits for the customer, and the application that it works for. */
const waitForToken = async (
  issuer: Server,
  asked: { requestId: unknown; backend: string; machine: { id: string; secret: string }; resource: string },
): Promise<void> => {
  const { requestId, backend, machine, resource } = asked
  for (;;) {
    const call = { token: backend, body: { requestId }, accept: [409] }
    const { status, body } = await callApi(issuer, 'POST', '/subject-tokens', call)
    if (status === 201) return exchange(issuer, String(body['subjectToken']), machine, resource)
    await delay(askEveryMs)
  }
}

const exchange = async (
  { port }: Server,
  subjectToken: string,
  { id, secret }: { id: string; secret: string },
  resource: string,
): Promise<void> => {
  const answer = await fetch(`http://127.0.0.1:${port}/oidc/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: subjectToken,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      ...{ resource, scope: 'read:orders' },
    }),
  })
  if (!answer.ok) throw new Error(`no token: ${answer.status} ${await answer.text()}`)
}
