import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import type { DemoData, DemoFile } from './demo-file.ts'
import { basic } from './management-client.ts'
import { type Narrator, UnexpectedAnswer } from './narrator.ts'
import { walkRegistration } from './walk-registration.ts'
import { walkSignIn } from './walk-sign-in.ts'

type Demo = DemoFile & { data: DemoData }

const tokenType = 'urn:ietf:params:oauth:token-type:access_token'
const tokenAnswer = z.object({ access_token: z.string(), token_type: z.literal('Bearer'), expires_in: z.number() })
const exchangeAnswer = tokenAnswer.extend({ issued_token_type: z.literal(tokenType) })
const refused = (code: string) => z.object({ code: z.literal(code) })

/**
 * How long a webhook may take to arrive, in ms. The first attempt is at once, but what a killed relay had under way
 * goes on after some seconds, and a breaker may be open.
 */
const webhookPatienceMs = 45_000

/**
 * The whole path on real input: token → gateway → policy → upstream, change → webhook, a person who signs in and out,
 * and one who registers and gets a second factor. `messages`: the file that mails are written to. Rejects at the
 * first surprise.
 */
export const walk = async (demo: Demo, narrator: Narrator, messages: string): Promise<void> => {
  const { data, gatewayUrl, issuerUrl } = demo
  const { call, step } = narrator
  const authorization = (token: string) => ({ authorization: `Bearer ${token}` })

  step('The integrator backend obtains a token for the Management API (client credentials).')
  const management = await call(
    {
      method: 'POST',
      url: `${issuerUrl}/oidc/token`,
      headers: { authorization: basic(data.integrator) },
      form: { grant_type: 'client_credentials', resource: `${issuerUrl}/api`, scope: 'impersonation users' },
    },
    { status: 200, body: tokenAnswer.extend({ scope: z.string() }) },
  )

  const subjectTokenFor = async (userId: string) => {
    const { subjectToken } = await call(
      {
        method: 'POST',
        url: `${issuerUrl}/api/subject-tokens`,
        headers: authorization(management.access_token),
        json: { userId, context: { ticketId: '4711', reason: 'The order page is empty' } },
      },
      { status: 201, body: z.object({ subjectToken: z.string(), expiresIn: z.number().int().positive() }) },
    )
    return subjectToken
  }
  const exchange = (subjectToken: string, parameters: Record<string, string>) => ({
    method: 'POST',
    url: `${issuerUrl}/oidc/token`,
    headers: { authorization: basic(data.application) },
    form: {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      client_id: data.application.clientId,
      subject_token: subjectToken,
      subject_token_type: tokenType,
      ...parameters,
    },
  })

  step('It decides that the support agent may act for the customer, and obtains a subject token for the customer.')
  const subjectToken = await subjectTokenFor(data.customer.id)

  step(
    'The acting party, the support agent, gets an openid token of their own: a subject token exchanged without a resource.',
  )
  const actor = await call(exchange(await subjectTokenFor(data.agent.id), { scope: 'openid' }), {
    status: 200,
    body: exchangeAnswer,
  })

  step('The support console exchanges the subject token, with the actor token, for access to the orders API.')
  const impersonation = {
    resource: data.ordersResource,
    scope: 'read:orders',
    actor_token: actor.access_token,
    actor_token_type: tokenType,
  }
  const access = await call(exchange(subjectToken, impersonation), {
    status: 200,
    body: exchangeAnswer.extend({ scope: z.literal('read:orders') }),
  })

  step('It calls the API through the gateway; the answer shows what the API received.')
  const viaGateway = (method: string, path: string, token: string, json?: unknown) => ({
    method,
    url: `${gatewayUrl}${path}`,
    headers: authorization(token),
    ...(json === undefined ? {} : { json }),
  })
  await call(viaGateway('GET', '/orders', access.access_token), {
    status: 200,
    body: z.object({
      received: z.object({
        headers: z.object({
          'x-auth-sub': z.literal(data.customer.id),
          'x-auth-act': z.literal(data.agent.id),
          'x-auth-scope': z.string().regex(/read(:|%3A)orders/),
        }),
      }),
    }),
  })

  step('Placing an order needs write:orders, which this token does not carry.')
  await call(viaGateway('POST', '/orders', access.access_token, { item: 'Cup' }), {
    status: 401,
    challenge: /error="insufficient_scope".*scope="write:orders"/,
    body: refused('insufficient_scope'),
  })

  step('Without any permission the orders cannot be read either.')
  const powerless = await call(
    exchange(await subjectTokenFor(data.customer.id), { resource: data.ordersResource, scope: '' }),
    { status: 200, body: exchangeAnswer.extend({ scope: z.literal('') }) },
  )
  await call(viaGateway('GET', '/orders', powerless.access_token), {
    status: 401,
    challenge: /error="insufficient_scope"/,
    body: refused('insufficient_scope'),
  })

  step('A refund is not for somebody who acts for somebody else: the policy refuses, whatever the scopes are.')
  const writer = await call(
    exchange(await subjectTokenFor(data.customer.id), { ...impersonation, scope: 'read:orders write:orders' }),
    { status: 200, body: exchangeAnswer.extend({ scope: z.string() }) },
  )
  await call(viaGateway('POST', '/orders/42/refund', writer.access_token), {
    status: 403,
    body: refused('impersonation_denied'),
  })

  step('A token for another audience is no token here: the clock API does not take tokens of the orders API.')
  await call(viaGateway('GET', '/clock', access.access_token), {
    status: 401,
    challenge: /error="invalid_token"/,
    body: refused('invalid_token'),
  })

  step('A token that has expired: those of the clock API live one second.')
  const shortLived = await call(
    exchange(await subjectTokenFor(data.customer.id), { resource: data.clockResource, scope: 'read:clock' }),
    { status: 200, body: exchangeAnswer },
  )
  narrator.say('(waiting two seconds)')
  await pause(2_100)
  await call(viaGateway('GET', '/clock', shortLived.access_token), {
    status: 401,
    challenge: /error="invalid_token"/,
    body: refused('invalid_token'),
  })

  step('A token whose claims were changed: the signature does not fit any more.')
  await call(viaGateway('GET', '/orders', withSubject(access.access_token, data.agent.id)), {
    status: 401,
    challenge: /error="invalid_token"/,
    body: refused('invalid_token'),
  })

  step('The subject token a second time: it was good for one use.')
  await call(exchange(subjectToken, impersonation), {
    status: 400,
    body: z.object({ error: z.literal('invalid_grant'), reason: z.literal('subject_token_consumed') }),
  })

  step('A user is changed, and the signed webhook arrives.')
  const name = `Carla Customer ${Date.now().toString(36)}`
  await call(
    {
      method: 'PATCH',
      url: `${issuerUrl}/api/users/${data.customer.id}`,
      headers: authorization(management.access_token),
      json: { name },
    },
    { status: 200, body: z.object({ id: z.literal(data.customer.id), name: z.literal(name) }) },
  )
  const webhook = await arrivedWebhook(demo.apiUrl, (payload) => payload.data.name === name)
  narrator.say(`the receiver got ${JSON.stringify(webhook, null, 2)}`)
  narrator.say('its signature verifies with the secret of the hook')

  await walkSignIn(demo, narrator)
  await walkRegistration(demo, { narrator, messages, managementToken: management.access_token })
}

const withSubject = (token: string, sub: string) => {
  const [header, claims, signature] = token.split('.') as [string, string, string]
  const changed = { ...JSON.parse(Buffer.from(claims, 'base64url').toString()), sub }
  return [header, Buffer.from(JSON.stringify(changed)).toString('base64url'), signature].join('.')
}

const userPayload = z.looseObject({
  event: z.literal('User.Data.Updated'),
  data: z.looseObject({ name: z.string() }),
})
const deliveries = z.object({
  webhooks: z.array(
    z.object({ receivedAt: z.string(), verified: z.boolean(), headers: z.unknown(), payload: z.unknown() }),
  ),
})

const arrivedWebhook = async (apiUrl: string, wanted: (payload: z.output<typeof userPayload>) => boolean) => {
  const deadline = performance.now() + webhookPatienceMs
  while (performance.now() < deadline) {
    const { webhooks } = deliveries.parse(await (await fetch(`${apiUrl}/webhooks`)).json())
    for (const webhook of webhooks) {
      const payload = userPayload.safeParse(webhook.payload)
      if (webhook.verified && payload.success && wanted(payload.data))
        return { headers: webhook.headers, payload: payload.data }
    }
    await pause(100)
  }
  throw new UnexpectedAnswer(`No verified webhook for the change arrived within ${webhookPatienceMs / 1000} s.`)
}
