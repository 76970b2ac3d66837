import { type IdentityProvider, startIdentityProvider } from '../../test/support/identity-provider.ts'
import { answerCalls } from '../harness/calls.ts'

/** What a connector needs to know of it. */
export type ProviderAddress = Pick<IdentityProvider, 'issuer' | 'clientId' | 'clientSecret'>

let provider: IdentityProvider

answerCalls({
  start: async () => {
    provider = await startIdentityProvider({
      hinted: (loginHint) => ({ sub: loginHint, email: loginHint, email_verified: true, name: `Person ${loginHint}` }),
    })
  },
  address: (): ProviderAddress => {
    const { issuer, clientId, clientSecret } = provider
    return { issuer, clientId, clientSecret }
  },
  /** As the browser of `person`, an email address, who is sent to `url`: where it is sent back to. */
  signIn: async ({ url, person }: { url: string; person: string }) =>
    (await provider.signIn(`${url}&${new URLSearchParams({ login_hint: person })}`)).href,
  stop: () => provider?.close(),
})
