import { generateKeyPairSync } from 'node:crypto'
import { createPasswordHasher } from '../../issuer/directory/users/password.ts'
import { sealKeyPair } from '../../issuer/tokens/keys/key-pair.ts'
import { insertKey } from '../../issuer/tokens/keys/key-store.ts'
import { publishSeconds } from '../../issuer/tokens/keys/rotation-times.ts'
import { type Query, statement } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { silentLogger } from '../../platform/logger.ts'
import { loadPolicies, type PolicySet, shippedPolicies } from '../../policies/policy-set.ts'

/** What all issuers of a test process share: made for each of them, it takes most of their start. */

/** The threads are started once; and digests cost next to nothing, because signing in takes little else. */
export const passwords = createPasswordHasher({ parameters: { memoryCost: 8, timeCost: 1, parallelism: 1 } })

let policies: Promise<PolicySet> | undefined

/** The policies that come with Surrogate. */
export const shipped = (): Promise<PolicySet> => {
  policies ??= loadPolicies({ path: shippedPolicies, logger: silentLogger })
  return policies
}

const newPair = () => generateKeyPairSync('rsa', { modulusLength: 2048 })
let pair: ReturnType<typeof newPair> | undefined

const anyKey = statement('', 'SELECT FROM signing_keys LIMIT 1')

/** The RS256 key that a first start makes for ID tokens. Nothing where there has been one. */
export const giveIdTokenKey = async (query: Query, envelope: Envelope): Promise<void> => {
  if ((await query(anyKey, [])).length > 0) return
  pair ??= newPair()
  await insertKey(query, 'idToken', 'active', sealKeyPair('RS256', pair, envelope), publishSeconds)
}
