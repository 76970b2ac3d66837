import { expect } from 'vitest'
import { signingKeysChannel } from '../../../issuer/tokens/keys/key-store.ts'
import { startBackChannel } from '../../support/back-channel.ts'
import type { TestIssuer } from '../../support/issuer.ts'
import { until } from '../../support/until.ts'
import { person } from './person.ts'
import { discover } from './relying-party.ts'
import { type ClientName, postLogoutRedirectUri, redirectUri, type Target } from './target.ts'

const password = 'correct horse battery staple'
const metadataOf = (logoutUri: string): Record<ClientName, object> => ({
  basic: {},
  other: {},
  post: { tokenEndpointAuthMethod: 'client_secret_post' },
  rs256: { idTokenSignedResponseAlg: 'RS256' },
  es256: { idTokenSignedResponseAlg: 'ES256' },
  told: { backchannelLogoutUri: logoutUri, backchannelLogoutSessionRequired: true },
})

/** Rows that say when something happened, or how long it is good. */
const timed = ['sessions', 'authorizations', 'authorization_codes', 'refresh_tokens', 'opaque_tokens']

export const startOurs = async (): Promise<Target> => {
  const channel = await startBackChannel()
  const { issuer } = channel
  const receiver = await channel.receiver()
  await channel.relay()
  await listRs256(issuer)
  await createPerson(issuer)
  const clients = await Promise.all(
    Object.entries(metadataOf(`${receiver.url}/logout`)).map(async ([name, own]) => [
      name,
      await createClient(issuer, own),
    ]),
  )
  return {
    issuer: issuer.issuer,
    clients: Object.fromEntries(clients),
    person,
    answers: [
      { page: 'sign-in', field: 'password', values: { identifier: person.email, password, choice: 'sign_in' } },
      { page: 'logout', field: 'logout', values: { logout: 'yes' } },
    ],
    signedOut: 'You have successfully signed out.',
    age: (seconds) => age(issuer, timed, seconds),
    logouts: receiver.received,
    close: channel.close,
  }
}

const age = async ({ sql }: TestIssuer, tables: readonly string[], seconds: number) => {
  const columns = await sql<{ table: string; column: string }>(
    `SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
     WHERE table_schema = current_schema() AND table_name = ANY ($1) AND data_type = 'timestamp with time zone'`,
    [tables],
  )
  for (const table of tables) {
    const moved = columns
      .filter((column) => column.table === table)
      .map(({ column }) => `${column} = ${column} - $1 * interval '1 second'`)
    await sql(`UPDATE ${table} SET ${moved.join(', ')}`, [seconds])
  }
}

/** Discovery lists RS256 when every copy of the JWKS has the key. */
const listRs256 = async (issuer: TestIssuer) => {
  await age(issuer, ['id_token_keys'], 3600)
  await issuer.sql(`SELECT pg_notify($1, '')`, [signingKeysChannel])
  await until(async () => {
    const { body } = await discover(issuer.issuer)
    expect(body.id_token_signing_alg_values_supported).toContain('RS256')
  })
}

const createPerson = async (issuer: TestIssuer) => {
  const answer = await issuer.api('POST', '/users', {
    name: person.name,
    username: person.preferred_username,
    primaryEmail: person.email,
    primaryPhone: person.phone_number.slice(1),
    password,
    profile: {
      givenName: person.given_name,
      familyName: person.family_name,
      ...{ nickname: person.nickname, website: person.website, gender: person.gender },
      ...{ birthdate: person.birthdate, zoneinfo: person.zoneinfo, locale: person.locale, address: person.address },
    },
  })
  expect(answer.status).toBe(200)
}

const createClient = async (issuer: TestIssuer, own: object) => {
  const { status, body } = await issuer.api('POST', '/applications', {
    name: 'A client',
    type: 'Traditional',
    oidcClientMetadata: {
      redirectUris: [redirectUri],
      postLogoutRedirectUris: [postLogoutRedirectUri],
      ...own,
    },
    // The plans know nothing of PKCE.
    customClientMetadata: { requirePkce: false },
  })
  expect(status).toBe(200)
  return { id: body.id, secret: body.secret }
}
