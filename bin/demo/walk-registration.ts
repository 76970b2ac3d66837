import { z } from 'zod'
import { randomAlphanumerics } from '../../platform/ids.ts'
import { Secret } from '../../platform/secret.ts'
import { createBrowser, hopLine } from '../../testing/browser.ts'
import { submissionOf } from '../../testing/html-page.ts'
import { codesFrom } from '../../testing/message-codes.ts'
import { SignInFailed, signIn } from '../../testing/sign-in.ts'
import { choice, type SignInOptions, type Step } from '../../testing/step.ts'
import type { DemoData, DemoFile } from './demo-file.ts'
import { type Narrator, UnexpectedAnswer } from './narrator.ts'

/**
 * Somebody new registers with a code that comes by mail, gets an authenticator app, and signs in with both. The account
 * is deleted at the end, so that this can be shown again.
 */
export const walkRegistration = async (
  demo: DemoFile & { data: DemoData },
  { narrator, messages, managementToken }: { narrator: Narrator; messages: string; managementToken: string },
): Promise<void> => {
  const { issuerUrl, webUrl } = demo
  const { webApplication } = demo.data
  const { call, say, step } = narrator
  const email = `new-${randomAlphanumerics(8).toLowerCase()}@demo.test`
  const password = new Secret(randomAlphanumerics(20))
  const headers = { authorization: `Bearer ${managementToken}` }

  const signedIn = async (more: Partial<SignInOptions>) => {
    const { idToken } = await signIn({
      issuer: new URL(`${issuerUrl}/oidc`),
      clientId: webApplication.clientId,
      clientSecret: new Secret(webApplication.clientSecret),
      redirectUri: `${webUrl}/callback`,
      ...{ user: email, password, consent: false, resources: [], parameters: {} },
      scope: 'openid email',
      browser: createBrowser({ onHop: (hop) => say(hopLine(hop)) }),
      ...more,
    }).catch((error: unknown) => {
      throw error instanceof SignInFailed ? new UnexpectedAnswer(error.message) : error
    })
    say(`the ID token says ${JSON.stringify(idToken, null, 2)}`)
    return idToken
  }

  step('Somebody new registers: a mail brings a code, which shows that the address is theirs.')
  const nextCode = async () => {
    const code = await readCode()
    say(`(the mail to ${email} says ${code}: ${messages})`)
    return code
  }
  const readCode = codesFrom(messages, { to: email })
  const registered = await signedIn({ parameters: { prompt: 'create' }, nextCode, steps: registering })
  if (registered?.['email'] !== email || registered['email_verified'] !== true)
    throw new UnexpectedAnswer('The ID token does not tell the address that was proven.')
  const userUrl = `${issuerUrl}/api/users/${registered.sub}`

  step('They get an authenticator app. On the pages they scan a picture; here the integrator backend makes its secret.')
  const { secret } = await call(
    { method: 'POST', url: `${userUrl}/mfa-verifications`, headers, json: { type: 'Totp' } },
    { status: 200, body: z.object({ type: z.literal('Totp'), secret: z.string() }) },
  )

  step('They sign in with the password, and then they are asked for a code of the app.')
  const again = await signedIn({ totpSecret: new Secret(secret) })
  const amr = z.array(z.string()).catch([]).parse(again?.['amr'])
  if (!['pwd', 'otp', 'mfa'].every((name) => amr.includes(name)))
    throw new UnexpectedAnswer('The ID token does not tell of two factors.')

  step('The account is deleted.')
  await call({ method: 'DELETE', url: userUrl, headers }, { status: 204, body: z.literal('') })
}

/** The other pages for a new account ask for what those of every sign-in do. */
const registering: readonly Step[] = [
  {
    name: 'the address of a new account',
    once: true,
    knows: ({ fields }) => fields.some(({ name }) => name === 'address'),
    fill: (form, _page, { user }) => submissionOf(form, { values: { address: user }, pressed: choice(form, 'code') }),
  },
]
