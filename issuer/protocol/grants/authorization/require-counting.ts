import type { AuthorizationFacts } from './authorization-facts-store.ts'
import { refused, refusedAfter } from './refusal.ts'

/**
 * Throws unless the authorization counts now. One that was ended says how; a third-party application needs a consent of
 * the person's that holds.
 */
export const requireCounting = (facts: AuthorizationFacts, { isThirdParty }: { isThirdParty: boolean }): void => {
  if (facts.isSuspended) throw refused('user_suspended')
  if (facts.endReason !== null) throw refusedAfter(facts.endReason)
  if (!facts.isOffline && !facts.sessionCounts) throw refused('session_ended')
  if (facts.expired) throw refused(facts.isOffline ? 'refresh_token_expired' : 'session_ended')
  if (isThirdParty && !facts.consent) throw refused('consent_revoked')
}
