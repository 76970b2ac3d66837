import { type IdentityProvider, startIdentityProvider } from '../../test/support/identity-provider.ts'
import { answerCalls } from '../harness/calls.ts'

/** What a connector needs to know of it. */
export type ProviderAddress = Pick<IdentityProvider, 'issuer' | 'clientId' | 'clientSecret'>

let provider: IdentityProvider

answerCalls({
  start: async () => {
    provider = await startIdentityProvider()
  },
  address: (): ProviderAddress => {
    const { issuer, clientId, clientSecret } = provider
    return { issuer, clientId, clientSecret }
  },
  /** As the browser of whoever is sent to `url`: where it is sent back to. */
  signIn: async (url: string) => (await provider.signIn(url)).href,
  stop: () => provider?.close(),
})
