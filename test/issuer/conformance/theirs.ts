import { randomBytes } from 'node:crypto'
import { newId } from '../../../platform/ids.ts'
import { startLogoutReceiver } from '../../support/back-channel.ts'
import { startReferenceProvider } from '../../support/oidc-provider-sign-in.ts'
import { person } from './person.ts'
import { type ClientName, postLogoutRedirectUri, redirectUri, type Target } from './target.ts'

const metadataOf = (logoutUri: string): Record<ClientName, object> => ({
  basic: {},
  other: {},
  post: { token_endpoint_auth_method: 'client_secret_post' },
  rs256: { id_token_signed_response_alg: 'RS256' },
  es256: { id_token_signed_response_alg: 'ES256' },
  told: { backchannel_logout_uri: logoutUri, backchannel_logout_session_required: true },
})

/** oidc-provider. */
export const startTheirs = async (): Promise<Target> => {
  const receiver = await startLogoutReceiver()
  const metadata = metadataOf(`${receiver.url}/logout`)
  const clients = Object.fromEntries(
    Object.keys(metadata).map((name) => [name, { id: newId(), secret: randomBytes(32).toString('base64url') }]),
  ) as Record<ClientName, { id: string; secret: string }>
  const provider = await startReferenceProvider({
    people: { ada: person },
    clients: Object.entries(clients).map(([name, { id, secret }]) => ({
      client_id: id,
      client_secret: secret,
      redirect_uris: [redirectUri],
      post_logout_redirect_uris: [postLogoutRedirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      ...metadata[name as ClientName],
    })),
  })
  return {
    issuer: provider.url,
    clients,
    person,
    answers: [
      { page: 'sign-in', field: 'login', values: { login: 'ada' } },
      { page: 'consent', field: 'consent', values: {} },
      { page: 'logout', field: 'logout', values: { logout: 'yes' } },
    ],
    signedOut: 'You are signed out.',
    age: async (seconds) => provider.age(seconds),
    logouts: receiver.received,
    async close() {
      await provider.close()
      await receiver.close()
    },
  }
}
