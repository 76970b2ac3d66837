/** The part of oidc-provider that peers and tests use; the package carries no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  export type Payload = Record<string, unknown> & {
    grantId?: string
    userCode?: string
    uid?: string
    consumed?: number
  }

  export type Adapter = {
    upsert: (id: string, payload: Payload, expiresIn?: number) => Promise<void>
    find: (id: string) => Promise<Payload | undefined>
    findByUid: (uid: string) => Promise<Payload | undefined>
    findByUserCode: (userCode: string) => Promise<Payload | undefined>
    consume: (id: string) => Promise<void>
    destroy: (id: string) => Promise<void>
    revokeByGrantId: (grantId: string) => Promise<void>
  }

  export type Client = { clientId: string }

  export type ResourceServerInfo = {
    scope: string
    audience: string
    accessTokenTTL: number
    accessTokenFormat: 'jwt'
    jwt: { sign: { alg: string } }
  }

  export type ResourceServer = ResourceServerInfo & { identifier: () => string }

  export type AccessToken = {
    accountId: string
    clientId: string
    scope?: string
    scopes: Set<string>
    expiration: number
    resourceServer?: ResourceServer
    extra?: Record<string, unknown>
    save: () => Promise<string>
  }

  export type Context = {
    oidc: {
      client: Client
      account?: { accountId: string }
      session: { grantIdFor: (clientId: string) => string | undefined }
      result?: { consent?: { grantId?: string } }
      requestParamOIDCScopes: Set<string>
      resourceServers: Record<string, ResourceServer & { scopes: Set<string> }>
      provider: Provider
      params: Record<string, string | undefined>
      entity: (name: string, value: unknown) => void
    }
    state: Record<string, unknown>
    body: unknown
  }

  type NewAccessToken = {
    accountId: string
    client: Client
    gty: string
    scope?: string
    resourceServer?: ResourceServer
  }

  export type Interaction = {
    uid: string
    prompt: { name: 'login' | 'consent' }
    params: Record<string, unknown>
    session?: { accountId: string }
    grantId?: string
  }

  export type Grant = {
    addOIDCScope: (scope: string) => void
    addOIDCClaims: (names: readonly string[]) => void
    addResourceScope: (resource: string, scope: string) => void
    save: () => Promise<string>
  }

  export class Provider {
    constructor(issuer: string, configuration: object)
    AccessToken: {
      new (properties: NewAccessToken): AccessToken
      find: (token: string) => Promise<AccessToken | undefined>
    }
    ResourceServer: new (
      identifier: string,
      info: ResourceServerInfo,
    ) => ResourceServer
    Grant: {
      new (properties: { accountId: string; clientId: string }): Grant
      find: (id: string) => Promise<Grant | undefined>
    }
    interactionDetails: (request: IncomingMessage, response: ServerResponse) => Promise<Interaction>
    interactionFinished: (
      request: IncomingMessage,
      response: ServerResponse,
      result: { login?: { accountId: string; amr?: string[] }; consent?: { grantId: string } },
      options?: { mergeWithLastSubmission: boolean },
    ) => Promise<void>
    callback: () => RequestListener
    on: (event: string, listener: (context: Context, error: Error) => void) => void
    registerGrantType: (
      name: string,
      handler: (context: Context) => Promise<void>,
      parameters: string[],
      allowedDuplicates?: string[],
    ) => void
  }

  type OAuthError = new (description?: string, scope?: string) => Error
  export const errors: Record<
    'InvalidGrant' | 'InvalidRequest' | 'InvalidScope' | 'InvalidTarget' | 'UnsupportedGrantType',
    OAuthError
  >
}
