import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KeyClient, registerKeyClient } from '../support/client-keys.ts'
import { accessTokenType, startTestIssuer, type TestIssuer, tokenExchange } from '../support/issuer.ts'
import type { TestApplication } from '../support/issuer-data.ts'

/** What integrators use, as its documentation says, with nothing of ours in between. */

let issuer: TestIssuer
let resource: string
let backend: TestApplication
let web: TestApplication
let signer: KeyClient
let user: { id: string }
let agent: { id: string }
beforeAll(async () => {
  issuer = await startTestIssuer()
  resource = await issuer.createResource({ scopes: ['read:orders', 'write:orders'] })
  backend = await issuer.createApplication({ type: 'MachineToMachine' })
  web = await issuer.createApplication({ type: 'Traditional' })
  signer = await registerKeyClient(issuer)
  for (const client of [backend, signer]) await issuer.grantApplication(client, resource, ['read:orders'])
  user = await issuer.createUser({ name: 'Ada' })
  agent = await issuer.createUser({ name: 'Grace' })
  await issuer.grantUser(user.id, resource, ['read:orders'])
})
afterAll(() => issuer.close())

describe('oauth4webapi', () => {
  const insecure = { [oauth.allowInsecureRequests]: true }
  let server: oauth.AuthorizationServer
  beforeAll(async () => {
    const url = new URL(issuer.issuer)
    server = await oauth.processDiscoveryResponse(
      url,
      await oauth.discoveryRequest(url, { algorithm: 'oauth2', ...insecure }),
    )
  })

  const parameters = () => new URLSearchParams({ resource, scope: 'read:orders' })
  const methods: Record<string, () => [client: oauth.Client, authentication: oauth.ClientAuth]> = {
    client_secret_basic: () => [{ client_id: backend.id }, oauth.ClientSecretBasic(backend.secret!)],
    client_secret_post: () => [{ client_id: backend.id }, oauth.ClientSecretPost(backend.secret!)],
    private_key_jwt: () => [
      { client_id: signer.id },
      oauth.PrivateKeyJwt({ key: signer.privateKey as oauth.CryptoKey, kid: signer.jwk.kid! }),
    ],
  }
  test.each(Object.entries(methods))('gets a token by %s, and an API validates it', async (_, method) => {
    const [client, authentication] = method()
    const response = await oauth.clientCredentialsGrantRequest(server, client, authentication, parameters(), insecure)
    const { access_token } = await oauth.processClientCredentialsResponse(server, client, response)
    const call = new Request(resource, { headers: { authorization: `Bearer ${access_token}` } })
    const claims = await oauth.validateJwtAccessToken(server, call, resource, insecure)
    expect(claims).toMatchObject({ iss: issuer.issuer, sub: client.client_id, aud: resource, scope: 'read:orders' })
    const elsewhere = oauth.validateJwtAccessToken(server, call, issuer.managementResource, insecure)
    await expect(elsewhere).rejects.toThrow('aud')
  })

  test('reads the refusal of a wrong secret', async () => {
    const client = { client_id: backend.id }
    const wrong = oauth.ClientSecretBasic('wrong')
    const response = await oauth.clientCredentialsGrantRequest(server, client, wrong, parameters(), insecure)
    await expect(oauth.processClientCredentialsResponse(server, client, response)).rejects.toMatchObject({
      cause: [{ scheme: 'basic', parameters: { realm: 'surrogate' } }],
      status: 401,
    })
  })

  test('exchanges, introspects and revokes', async () => {
    const client = { client_id: web.id }
    const authentication = oauth.ClientSecretBasic(web.secret!)
    const response = await oauth.genericTokenEndpointRequest(
      server,
      client,
      authentication,
      tokenExchange,
      {
        subject_token: await issuer.subjectToken(user.id),
        subject_token_type: accessTokenType,
        actor_token: await issuer.actorToken(web, agent.id),
        actor_token_type: accessTokenType,
        resource,
        scope: 'read:orders',
      },
      insecure,
    )
    const tokens = await oauth.processGenericTokenEndpointResponse(server, client, response)
    expect(tokens).toMatchObject({ token_type: 'bearer', scope: 'read:orders', issued_token_type: accessTokenType })

    const introspect = async () =>
      oauth.processIntrospectionResponse(
        server,
        client,
        await oauth.introspectionRequest(server, client, authentication, tokens.access_token, insecure),
      )
    expect(await introspect()).toMatchObject({ active: true, sub: user.id, act: { sub: agent.id } })
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, client, authentication, tokens.access_token, insecure),
    )
    expect(await introspect()).toEqual({ active: false })
  })

  test('reads userinfo, and why it does not get it', async () => {
    const client = { client_id: web.id }
    const token = await issuer.actorToken(web, user.id)
    const answer = await oauth.userInfoRequest(server, client, token, insecure)
    expect(await oauth.processUserInfoResponse(server, client, user.id, answer)).toEqual({ sub: user.id })
    const refused = await oauth.userInfoRequest(server, client, 'nonsense', insecure)
    await expect(oauth.processUserInfoResponse(server, client, user.id, refused)).rejects.toMatchObject({
      cause: [{ scheme: 'bearer', parameters: { error: 'invalid_token' } }],
    })
  })
})

describe('openid-client', () => {
  const connect = (clientId: string, authentication: openid.ClientAuth) =>
    openid.discovery(new URL(issuer.issuer), clientId, undefined, authentication, {
      execute: [openid.allowInsecureRequests],
    })

  test('discovers what the server can do', async () => {
    const config = await connect(backend.id, openid.ClientSecretBasic(backend.secret))
    expect(config.serverMetadata()).toMatchObject({
      issuer: issuer.issuer,
      grant_types_supported: expect.arrayContaining(['client_credentials', tokenExchange]),
    })
  })

  test.each(['basic', 'post', 'key'])('gets a token for itself (%s)', async (method) => {
    const [id, authentication] = {
      basic: [backend.id, openid.ClientSecretBasic(backend.secret)] as const,
      post: [backend.id, openid.ClientSecretPost(backend.secret)] as const,
      key: [
        signer.id,
        openid.PrivateKeyJwt({ key: signer.privateKey as openid.CryptoKey, kid: signer.jwk.kid! }),
      ] as const,
    }[method]!
    const tokens = await openid.clientCredentialsGrant(await connect(id, authentication), {
      resource,
      scope: 'read:orders',
    })
    expect(await issuer.verify(tokens.access_token, resource)).toMatchObject({ sub: id, scope: 'read:orders' })
  })

  test('exchanges, reads userinfo, introspects and revokes', async () => {
    const config = await connect(web.id, openid.ClientSecretBasic(web.secret))
    const exchange = async (parameters: Record<string, string>) =>
      openid.genericGrantRequest(config, tokenExchange, {
        subject_token: await issuer.subjectToken(user.id),
        subject_token_type: accessTokenType,
        ...parameters,
      })
    const opaque = await exchange({ scope: 'openid profile' })
    expect(await openid.fetchUserInfo(config, opaque.access_token, user.id)).toMatchObject({
      sub: user.id,
      name: 'Ada',
    })

    const { access_token } = await exchange({ resource, scope: 'read:orders' })
    expect(await openid.tokenIntrospection(config, access_token)).toMatchObject({
      active: true,
      sub: user.id,
      sid: expect.any(String),
    })
    await openid.tokenRevocation(config, access_token)
    expect(await openid.tokenIntrospection(config, access_token)).toEqual({ active: false })
  })

  test('tells its user why an exchange was refused', async () => {
    const config = await connect(web.id, openid.ClientSecretBasic(web.secret))
    const used = await issuer.subjectToken(user.id)
    const form = { subject_token: used, subject_token_type: accessTokenType, resource }
    await openid.genericGrantRequest(config, tokenExchange, form)
    await expect(openid.genericGrantRequest(config, tokenExchange, form)).rejects.toMatchObject({
      error: 'invalid_grant',
      error_description: expect.any(String),
      cause: { reason: 'subject_token_consumed' },
    })
  })
})
