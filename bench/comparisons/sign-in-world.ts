import { randomBytes } from 'node:crypto'
import type { Connection } from '../harness/database-store.ts'
import type { Person, Site } from '../harness/sign-in-flow.ts'
import type { Server } from '../harness/stage.ts'

/** The one public client of both issuers, and what it asks for. */
export const signInClient = { id: 'bench-app', redirectUri: 'https://app.example.test/callback' }
export const signInScope = {
  openid: ['openid', 'profile', 'email'],
  resource: ['read:orders', 'write:orders'],
}
export const password = 'correct horse battery staple'

/** What the comparison needs of an issuer, whoever wrote it: 1 000 people with one password, numbered from 1. */
export interface SignInWorld {
  connection: Connection
  issuer: string
  paths: { authorize: string; token: string; jwks: string }
  resource: string
  /** One for each of these people, as if they had signed in, each of an authorization of its own. */
  mintRefreshTokens: (users: readonly number[]) => Promise<string[]>
  /** As if the time were over in which a token that was replaced still gets the one that replaced it. */
  endLeeway: (token: string) => Promise<void>
  close: () => Promise<void>
}

/** One issuer with its data. */
export interface Issuer<World extends SignInWorld = SignInWorld> {
  name: string
  server: Server
  world: World
  site: Site
}

export const personOf = (user: number): Person => ({ identifier: `${user}@example.test`, password })

const scope = [...signInScope.openid, 'offline_access', ...signInScope.resource].join(' ')

export const siteOf = (server: Server, world: Pick<SignInWorld, 'issuer' | 'paths' | 'resource'>): Site => ({
  port: server.port,
  origin: new URL(world.issuer).origin,
  paths: world.paths,
  client: signInClient,
  resource: world.resource,
  scope,
})

/** A server that decides nothing, with addresses of its own. */
export const floorSiteOf = (server: Server): Site =>
  siteOf(server, {
    issuer: 'http://localhost',
    paths: { authorize: '/auth', token: '/token', jwks: '/jwks' },
    resource: '',
  })

/** An application that holds all of the Management API. */
export const manager = { id: 'bench-manager', secret: randomBytes(32).toString('base64url') }

export const issuerOf = async ({ port }: Server): Promise<string> => {
  const metadata = await fetch(`http://127.0.0.1:${port}/oidc/.well-known/openid-configuration`)
  return ((await metadata.json()) as { issuer: string }).issuer
}

export const refreshRequest = ({ port, paths, client, resource }: Site, token: string): string => {
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: client.id,
    refresh_token: token,
    resource,
  }).toString()
  return [
    `POST ${paths.token} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    'accept: application/json',
    'content-type: application/x-www-form-urlencoded',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

export const verdict = (isMet: boolean): string => (isMet ? 'met' : 'MISSED')
