import { expect, test } from 'vitest'
import { newDpopClient } from '../../support/dpop.ts'
import { startIntrospecting } from './introspection-gateway.ts'

/** RFC 9449 §6.2: opaque tokens that are bound to a key, which only the answer of the issuer says. */

test('an opaque token with cnf.jkt is good with a proof, once, and not without', async () => {
  const gateway = await startIntrospecting({ route: { dpop: 'accepted' } })
  const client = await newDpopClient()
  const token = gateway.issue({ cnf: client.cnf, token_type: 'DPoP' })
  const url = `${gateway.url}/orders/1`
  const send = async (headers: Record<string, string>) => {
    const response = await fetch(url, { headers })
    const { code } = (await response.json()) as { code?: string }
    return { status: response.status, code, nonce: response.headers.get('dpop-nonce') ?? undefined }
  }
  expect(await send({ authorization: `Bearer ${token}` })).toMatchObject({ status: 401, code: 'invalid_token' })
  const { code, nonce } = await send(await client.fields({ url, token }))
  expect(code).toBe('use_dpop_nonce')
  const fields = await client.fields({ url, token, nonce })
  expect((await send(fields)).status).toBe(200)
  expect(await send(fields)).toMatchObject({ status: 401, code: 'invalid_dpop_proof' })
  const stranger = await newDpopClient()
  expect(await send(await stranger.fields({ url, token, nonce }))).toMatchObject({ code: 'invalid_dpop_proof' })
})

test('on a route without dpop it is refused', async () => {
  const gateway = await startIntrospecting()
  const { cnf } = await newDpopClient()
  expect(await gateway.ask('/orders/1', gateway.issue({ cnf }))).toMatchObject({
    status: 401,
    body: { code: 'invalid_token', detail: 'The token is bound to a key, and no bearer token.' },
  })
  expect((await gateway.ask('/orders/1', gateway.issue())).status).toBe(200)
})
