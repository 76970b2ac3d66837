import type { Migration } from '../platform/database/database.ts'
import { identity } from './0001-identity.ts'
import { tokens } from './0002-tokens.ts'
import { events } from './0003-events.ts'
import { revocations } from './0004-revocations.ts'
import { clientAssertionsAndLimits } from './0005-client-assertions-and-limits.ts'
import { personalAccessTokens } from './0006-personal-access-tokens.ts'
import { keyRotation } from './0007-key-rotation.ts'
import { managementResources } from './0008-management-resources.ts'
import { organizations } from './0009-organizations.ts'
import { indicatorHints } from './0011-indicator-hints.ts'
import { idempotency } from './0012-idempotency.ts'
import { searchIndexes } from './0013-search-indexes.ts'
import { scopesByRole } from './0014-scopes-by-role.ts'
import { deliveryHealth } from './0016-delivery-health.ts'
import { hooksAndReplays } from './0017-hooks-and-replays.ts'
import { userSearch } from './0018-user-search.ts'
import { claimsScripts } from './0019-claims-scripts.ts'
import { outboxPending } from './0020-outbox-pending.ts'
import { deliveriesInPlace } from './0021-deliveries-in-place.ts'
import { lanesByTrigger } from './0022-lanes-by-trigger.ts'
import { deliveriesById } from './0023-deliveries-by-id.ts'
import { givenUp } from './0024-given-up.ts'
import { hookEvent } from './0025-hook-event.ts'
import { signIn } from './0026-sign-in.ts'
import { idTokenKeys } from './0027-id-token-keys.ts'
import { interactions } from './0028-interactions.ts'
import { messages } from './0029-messages.ts'
import { factors } from './0030-factors.ts'
import { signInExperience } from './0031-sign-in-experience.ts'
import { registration } from './0032-registration.ts'
import { captcha } from './0033-captcha.ts'
import { notices } from './0034-notices.ts'
import { passkeyOffers } from './0035-passkey-offers.ts'
import { senders } from './0036-senders.ts'
import { account } from './0037-account.ts'
import { accountSignIns } from './0038-account-sign-ins.ts'
import { identityProviders } from './0039-identity-providers.ts'
import { logouts } from './0041-logouts.ts'
import { dpop } from './0042-dpop.ts'
import { deviceCodes } from './0043-device-codes.ts'
import { impersonationRequests } from './0044-impersonation-requests.ts'
import { console } from './0045-console.ts'
import { versions } from './0046-versions.ts'
import { impersonationHistory } from './0047-impersonation-history.ts'
import { userSearchBeside } from './0048-user-search-beside.ts'
import { userSearchCopy } from './0049-user-search-copy.ts'
import { userSearchExchange } from './0050-user-search-exchange.ts'
import { identityProvidersInMemory } from './0051-identity-providers-in-memory.ts'

/** The schema's history: ordered, immutable, forward only. A new step is a new file and a line at the end. */
export const migrations: readonly Migration[] = [
  identity,
  tokens,
  events,
  revocations,
  clientAssertionsAndLimits,
  personalAccessTokens,
  keyRotation,
  managementResources,
  organizations,
  indicatorHints,
  idempotency,
  searchIndexes,
  scopesByRole,
  deliveryHealth,
  hooksAndReplays,
  userSearch,
  claimsScripts,
  outboxPending,
  deliveriesInPlace,
  lanesByTrigger,
  deliveriesById,
  givenUp,
  hookEvent,
  signIn,
  idTokenKeys,
  interactions,
  messages,
  factors,
  signInExperience,
  registration,
  captcha,
  notices,
  passkeyOffers,
  senders,
  account,
  accountSignIns,
  identityProviders,
  logouts,
  dpop,
  deviceCodes,
  impersonationRequests,
  console,
  versions,
  impersonationHistory,
  userSearchBeside,
  userSearchCopy,
  userSearchExchange,
  identityProvidersInMemory,
]
