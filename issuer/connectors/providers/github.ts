import * as oauth from 'oauth4webapi'
import { z } from 'zod'
import { readCallback } from './callback.ts'
import { inStage } from './faults.ts'
import { FederationError } from './federation-error.ts'
import type { ProviderFetch } from './outbound.ts'
import type { Claims } from './profile.ts'

export interface GitHubParty {
  clientId: string
  clientSecret: string
  scope: string
  /** Of a GitHub Enterprise Server. */
  endpoint?: string | undefined
  fetch: ProviderFetch
}

const keptSchema = z.object({ state: z.string().min(1), verifier: z.string().min(43) })

const userSchema = z.looseObject({
  id: z.number().int().positive(),
  login: z.string(),
  name: z.string().nullish(),
  avatar_url: z.string().nullish(),
})
const emailsSchema = z.array(z.looseObject({ email: z.string(), primary: z.boolean(), verified: z.boolean() }))

const errorSchema = z.object({ error: z.string() })

const addressesOf = (endpoint: string | undefined) => {
  const site = endpoint?.replace(/\/$/, '') ?? 'https://github.com'
  return { site, api: endpoint === undefined ? 'https://api.github.com' : `${site}/api/v3` }
}

const serverOf = ({ endpoint }: GitHubParty): oauth.AuthorizationServer => {
  const { site } = addressesOf(endpoint)
  return { issuer: site, token_endpoint: `${site}/login/oauth/access_token` }
}

/** GitHub says errors with 200. */
const withErrorStatus = async (response: Response): Promise<Response> => {
  const body = errorSchema.safeParse(
    await response
      .clone()
      .json()
      .catch(() => undefined),
  )
  return response.status === 200 && body.success ? Response.json(body.data, { status: 400 }) : response
}

/** OAuth 2.0 with PKCE: GitHub has no ID token, its API tells who somebody is. */
export const gitHub = {
  async begin(party: GitHubParty, { redirectUri, state }: { redirectUri: string; state: string }) {
    const verifier = oauth.generateRandomCodeVerifier()
    const url = new URL(`${addressesOf(party.endpoint).site}/login/oauth/authorize`)
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: party.clientId,
      redirect_uri: redirectUri,
      scope: party.scope,
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString()
    const kept: z.output<typeof keptSchema> = { state, verifier }
    return { url: url.href, kept }
  },

  /** As claims of OpenID Connect. */
  async complete(
    party: GitHubParty,
    answer: { kept: unknown; parameters: URLSearchParams; redirectUri: string },
  ): Promise<Claims> {
    const kept = keptSchema.safeParse(answer.kept)
    if (!kept.success) throw new FederationError('invalid_response', 'The answer is to another kind of request.')
    const [server, client] = [serverOf(party), { client_id: party.clientId }]
    const callback = await readCallback(server, client, answer.parameters, kept.data.state)
    const tokens = await inStage('token', async () => {
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        client,
        oauth.ClientSecretPost(party.clientSecret),
        callback,
        answer.redirectUri,
        kept.data.verifier,
        { [oauth.customFetch]: party.fetch, [oauth.allowInsecureRequests]: true },
      )
      return oauth.processAuthorizationCodeResponse(server, client, await withErrorStatus(response))
    })
    const api = async <Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema>> => {
      const response = await party.fetch(`${addressesOf(party.endpoint).api}${path}`, {
        headers: { authorization: `Bearer ${tokens.access_token}`, accept: 'application/vnd.github+json' },
      })
      const read = schema.safeParse(response.status === 200 ? await response.json().catch(() => undefined) : undefined)
      if (read.success) return read.data
      throw new FederationError('unavailable', `GitHub's API did not answer ${path} as it should (${response.status}).`)
    }
    const user = await api('/user', userSchema)
    // The address of the profile is what its owner likes to show; which are verified is told here alone.
    const primary = (await api('/user/emails', emailsSchema)).find(({ primary }) => primary)
    return {
      ...user,
      sub: String(user.id),
      name: user.name ?? user.login,
      picture: user.avatar_url ?? undefined,
      email: primary?.email,
      email_verified: primary?.verified,
    }
  },
}
