import type { Query } from '../../platform/database/database.ts'
import type { TokenAudit } from '../base/audit/token-audit.ts'
import type { OfferedConnector } from '../connectors/federation.ts'
import { findSession } from '../tokens/sessions/session-store.ts'
import { accountClientId } from './account-client.ts'
import { isSameText } from './federation-request.ts'
import type { FederationRequests, FederationSent } from './federation-requests.ts'
import { type AwaitedProof, beginAccountProof, keepAccountProof } from './federation-store.ts'
import { findHolder } from './identity-store.ts'
import type { Visitor } from './visitor.ts'

/** What came of asking a provider whom somebody has an account with there, for the page that asked. */
export type LinkOutcome = 'verified' | 'identity_in_use' | 'not_theirs' | 'denied' | 'failed' | 'unavailable'

/**
 * Whoever looks after their account gets an identity at a provider, or shows by one of theirs again who they are:
 * `begin` sends the browser there, and the callback back to `returnTo`. It is bound to the session, as a sign-in is to
 * its interaction.
 */
export interface AccountFederation {
  /** Where the person can show who they are. */
  ofPerson(userId: string): Promise<OfferedConnector[]>
  /**
   * `returnTo`: a path of the account pages. The browser comes there with `outcome` (`LinkOutcome`) and, when it is
   * `verified`, `verificationId`: a verification of the session, kind `federated`, purpose `bind`, good for 10 minutes
   * and once. `identity_in_use`: it is somebody else's. Whoever calls has asked what the person may do now.
   *
   * With `confirmedTo`, an account page too, nothing is linked: an identity that is the person's is a verification of
   * purpose `reauth`, and leads there; any other is `not_theirs`.
   */
  begin(
    person: { userId: string; sessionId: string; ip: string },
    asked: { connectorId: string; returnTo: string; confirmedTo?: string },
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
  audit,
}: {
  query: Query
  requests: FederationRequests
  audit: TokenAudit
}): AccountFederation => ({
  ofPerson: (userId) => requests.ofPerson(userId, { clientId: accountClientId }),

  begin({ userId, sessionId, ip }, { connectorId, returnTo, confirmedTo }) {
    for (const path of [returnTo, confirmedTo ?? returnTo]) {
      if (!/^\/account(?:[/?]|$)/.test(path)) throw new Error(`${path} is no account page.`)
    }
    return requests.send({ connectorId, ip, asksAgain: confirmedTo !== undefined }, ({ id, sealed }) =>
      beginAccountProof(query, { id, userId, holder: sessionId, returnTo, confirmedTo, sealed }),
    )
  },

  async answer(awaited, visitor, { connectorId, state, parameters }) {
    const { account } = awaited
    if (!account) return { outcome: 'refused' }
    const session = visitor.session === undefined ? undefined : await findSession(query, visitor.session)
    if (session?.id !== account.holder || session.userId !== account.userId) return { outcome: 'other_browser' }
    const { userId, confirmedTo } = account
    const note = (error?: string) => {
      if (confirmedTo === undefined) return
      const { ip, userAgent } = visitor.origin
      audit.record({
        key: 'Account.Verification.federated',
        result: error === undefined ? 'Success' : 'Error',
        applicationId: accountClientId,
        userId,
        payload: { ip, userAgent, connectorId, error },
      })
    }
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
      note(completed.reason)
      return goOn({ outcome: outcomes[completed.reason] ?? 'failed' })
    }
    const { identity } = completed
    const holder = await findHolder(query, identity)
    if (confirmedTo !== undefined && holder !== userId) {
      note('not_theirs')
      return goOn({ outcome: 'not_theirs' })
    }
    if (holder !== undefined && holder !== userId) return goOn({ outcome: 'identity_in_use' })
    const isKept = await keepAccountProof(query, awaited.id, { federated: identity })
    if (!isKept) return goOn({})
    note()
    if (confirmedTo !== undefined) return { outcome: 'go_on', location: confirmedTo }
    return goOn({ outcome: 'verified', verificationId: awaited.id })
  },
})
