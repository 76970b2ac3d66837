import type { Query } from '../../platform/database/database.ts'
import { findSession } from '../tokens/sessions/session-store.ts'
import { isSameText } from './federation-request.ts'
import type { FederationRequests, FederationSent } from './federation-requests.ts'
import { type AwaitedProof, beginAccountProof, keepAccountProof } from './federation-store.ts'
import { findHolder } from './identity-store.ts'
import type { Visitor } from './visitor.ts'

/** What came of asking a provider whom somebody has an account with there, for the page that asked. */
export type LinkOutcome = 'verified' | 'identity_in_use' | 'denied' | 'failed' | 'unavailable'

/**
 * Whoever looks after their account gets an identity at a provider: `begin` sends the browser there, and the callback
 * back to `returnTo`. It is bound to the session, as a sign-in is to its interaction.
 */
export interface AccountFederation {
  /**
   * `returnTo`: a path of the account pages. The browser comes there with `outcome` (`LinkOutcome`) and, when it is
   * `verified`, `verificationId`: a verification of the session, kind `federated`, purpose `bind`, good for 10 minutes
   * and once. `identity_in_use`: it is somebody else's. Whoever calls has asked what the person may do now.
   */
  begin(
    person: { userId: string; sessionId: string; ip: string },
    asked: { connectorId: string; returnTo: string },
  ): Promise<FederationSent>
  /** Where the browser goes from the callback. */
  answer(
    awaited: AwaitedProof,
    visitor: Visitor,
    answer: { connectorId: string; state: string; parameters: URLSearchParams },
  ): Promise<{ outcome: 'go_on'; location: string } | { outcome: 'refused' | 'other_browser' }>
}

const outcomes: Readonly<Record<string, LinkOutcome>> = { denied: 'denied', unavailable: 'unavailable' }

export const createAccountFederation = ({
  query,
  requests,
}: {
  query: Query
  requests: FederationRequests
}): AccountFederation => ({
  begin({ userId, sessionId, ip }, { connectorId, returnTo }) {
    if (!/^\/account(?:[/?]|$)/.test(returnTo)) throw new Error(`${returnTo} is no account page.`)
    return requests.send({ connectorId, ip }, ({ id, sealed }) =>
      beginAccountProof(query, { id, userId, holder: sessionId, returnTo, sealed }),
    )
  },

  async answer(awaited, visitor, { connectorId, state, parameters }) {
    const { account } = awaited
    if (!account) return { outcome: 'refused' }
    const session = visitor.session === undefined ? undefined : await findSession(query, visitor.session)
    if (session?.id !== account.holder || session.userId !== account.userId) return { outcome: 'other_browser' }
    const goOn = (told: { outcome?: LinkOutcome; verificationId?: string }) => {
      const location = new URL(account.returnTo, 'http://issuer')
      for (const [name, value] of Object.entries(told)) location.searchParams.set(name, value)
      return { outcome: 'go_on', location: location.pathname + location.search } as const
    }
    const asked = requests.requestOf(awaited)
    // It came before, or too late: the page is shown as it is.
    if (!asked) return goOn({})
    if (asked.connectorId !== connectorId || !isSameText(asked.state, state)) return { outcome: 'refused' }
    const completed = await requests.complete(awaited.id, asked, parameters)
    if ('reason' in completed) {
      if (completed.reason === 'used') return goOn({})
      return goOn({ outcome: outcomes[completed.reason] ?? 'failed' })
    }
    const { identity } = completed
    const holder = await findHolder(query, identity)
    if (holder !== undefined && holder !== account.userId) return goOn({ outcome: 'identity_in_use' })
    const isKept = await keepAccountProof(query, awaited.id, { federated: identity })
    return isKept ? goOn({ outcome: 'verified', verificationId: awaited.id }) : goOn({})
  },
})
