import { type Application, signsPeopleIn } from './application-types.ts'

interface Values {
  application: Pick<Application, 'id' | 'type' | 'customClientMetadata'>
  issuer: string
  /** Undefined: the default one. */
  resource: string | undefined
  scopes: readonly string[]
  redirectUri: string | undefined
}

interface Snippet {
  title: string
  text: string
}

/** Code for an application, with its values; it runs as it stands once the secret is in `CLIENT_SECRET`. */
export const snippetsOf = (values: Values): Snippet[] => {
  const { type, customClientMetadata } = values.application
  if (!signsPeopleIn(values.application)) return [clientCredentials(values), nodeBackend(values)]
  if (customClientMetadata.isDeviceFlow) return [device(values)]
  return type === 'SPA' ? [browser(values)] : [server(values)]
}

const clientCredentials = ({ application, issuer, resource, scopes }: Values): Snippet => ({
  title: 'curl',
  text: [
    `curl '${issuer}/token' \\`,
    `  -u '${application.id}':"$CLIENT_SECRET" \\`,
    [
      '  -d grant_type=client_credentials',
      ...(resource ? [`-d resource='${resource}'`] : []),
      ...(scopes.length > 0 ? [`-d scope='${scopes.join(' ')}'`] : []),
    ].join(' \\\n  '),
  ].join('\n'),
})

const nodeBackend = ({ application, issuer, resource, scopes }: Values): Snippet => ({
  title: 'JavaScript, without a library',
  text: `const answer = await fetch('${issuer}/token', {
  method: 'POST',
  headers: { authorization: \`Basic \${btoa(\`${application.id}:\${process.env.CLIENT_SECRET}\`)}\` },
  body: new URLSearchParams({
    grant_type: 'client_credentials',${resource ? `\n    resource: '${resource}',` : ''}${
      scopes.length > 0 ? `\n    scope: '${scopes.join(' ')}',` : ''
    }
  }),
})
const { access_token } = await answer.json()`,
})

const scopeOf = ({ scopes, resource }: Values): string =>
  ['openid', 'profile', 'offline_access', ...(resource ? scopes : [])].join(' ')

const server = (values: Values): Snippet => ({
  title: 'JavaScript, with openid-client 6',
  text: `import * as client from 'openid-client'

const config = await client.discovery(new URL('${values.issuer}'), '${values.application.id}', process.env.CLIENT_SECRET)

// Keep both in the session of the browser, and send it to the address.
const codeVerifier = client.randomPKCECodeVerifier()
const state = client.randomState()
const address = client.buildAuthorizationUrl(config, {
  redirect_uri: '${values.redirectUri ?? 'https://app.example.com/callback'}',
  scope: '${scopeOf(values)}',${values.resource ? `\n  resource: '${values.resource}',` : ''}
  code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
  code_challenge_method: 'S256',
  state,
})

// When it has come back to the redirect URI:
const tokens = await client.authorizationCodeGrant(config, currentUrl, {
  pkceCodeVerifier: codeVerifier,
  expectedState: state,
})`,
})

const browser = (values: Values): Snippet => ({
  title: 'JavaScript, with @logto/browser 3',
  text: `import LogtoClient from '@logto/browser'

const client = new LogtoClient({
  endpoint: '${new URL(values.issuer).origin}',
  appId: '${values.application.id}',${values.resource ? `\n  resources: ['${values.resource}'],` : ''}
  scopes: [${values.scopes.map((scope) => `'${scope}'`).join(', ')}],
})

await client.signIn('${values.redirectUri ?? 'https://app.example.com/callback'}')

// On the page of the redirect URI:
await client.handleSignInCallback(location.href)
const token = await client.getAccessToken(${values.resource ? `'${values.resource}'` : ''})`,
})

const device = (values: Values): Snippet => ({
  title: 'Command line',
  text: `npx surrogate login --issuer '${values.issuer}' --client '${values.application.id}'${values.resource ? ` --resource '${values.resource}'` : ''}`,
})
