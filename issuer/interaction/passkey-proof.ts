import type { EventRequest } from '../../events/outbox.ts'
import type { Query } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import {
  type AuthenticationCredential,
  type AuthenticationOptions,
  authenticationOptions,
  type Factors,
  findPasskey,
  findUserHandle,
  listCredentials,
  newUserHandle,
  plausibleCredentials,
  presentedCredentialId,
  type RegistrationCredential,
  type RegistrationOptions,
  type RelyingParty,
  registrationOptions,
  verifyAuthentication,
  verifyRegistration,
} from '../directory/users/factors/index.ts'
import { lockoutKeys } from '../directory/users/lockout/lockout-keys.ts'
import { lockoutDefaults } from '../directory/users/lockout/lockout-policy.ts'
import type { AccountKey } from './account-key.ts'
import type { AttemptOutcome, Attempts } from './attempts.ts'
import { openFactor, pendingPasskey, sealFactor, toPendingCredential } from './bindings.ts'
import type { Identifier } from './identifier.ts'
import type { Interaction } from './interaction-store.ts'
import { beginProof, keepProof, takeTry } from './proof-store.ts'
import type { ProofPurpose } from './proofs.ts'
import type { Visitor } from './visitor.ts'

export type PasskeyPurpose = 'sign_in' | 'mfa'

export interface PasskeyProofs {
  /**
   * Options for the browser. To sign in without an identifier, any passkey of this issuer may answer; with one, those
   * of its account, or plausible ones of nobody. Undefined when the interaction is over.
   */
  authentication(
    interaction: Interaction,
    purpose: PasskeyPurpose,
    visitor: Visitor,
    identifier?: Identifier,
  ): Promise<{ proofId: string; options: AuthenticationOptions } | undefined>
  prove(
    interaction: Interaction,
    visitor: Visitor,
    answer: { proofId: string; credential: AuthenticationCredential; keep?: boolean | undefined },
    request: EventRequest,
  ): Promise<AttemptOutcome>
  /**
   * Options to make one, for the person or for somebody new, called `name`. `isConditional`: the browser may make it by
   * itself (`mediation: 'conditional'`).
   */
  registration(
    interaction: Interaction,
    about: { name: string; displayName: string; isConditional?: boolean },
  ): Promise<{ proofId: string; options: RegistrationOptions } | undefined>
  /** The new passkey waits for the interaction to finish. False when it is none. */
  bind(
    interaction: Interaction,
    visitor: Visitor,
    answer: { proofId: string; credential: RegistrationCredential },
  ): Promise<boolean>
}

/** How long a challenge may be answered, in seconds. */
const challengeSeconds = 300

export const createPasskeyProofs = ({
  query,
  attempts,
  accountKey,
  factors,
  envelope,
  hmac,
  relyingParty,
}: {
  query: Query
  attempts: Attempts
  accountKey: AccountKey
  factors: Factors
  envelope: Envelope
  hmac: Hmac
  relyingParty: RelyingParty
}): PasskeyProofs => {
  const keys = lockoutKeys(hmac)
  /** Made of the id of its proof, which is random and used once: the database holds no challenge. */
  const challengeOf = (proofId: string) => hmac('verification-codes', 'challenge', proofId).toString('base64url')

  /** A challenge is used up by the first answer, whatever it is. */
  const takeChallenge = async (interaction: Interaction, proofId: string, purposes: readonly ProofPurpose[]) => {
    const taken = await takeTry(query, {
      id: proofId,
      interactionId: interaction.id,
      kinds: ['passkey'],
      purposes,
      most: 1,
    })
    return taken && { ...taken, challenge: challengeOf(proofId) }
  }

  return {
    async authentication(interaction, purpose, visitor, identifier) {
      const proofId = await beginProof(query, {
        interactionId: interaction.id,
        userId: purpose === 'mfa' ? (interaction.person?.id ?? null) : null,
        ...{ kind: 'passkey', purpose, data: {}, secret: null, seconds: challengeSeconds },
      })
      if (proofId === undefined) return undefined
      const person =
        purpose === 'mfa' ? interaction.person : identifier && (await accountKey(identifier, visitor)).person
      const held = person ? await listCredentials(query, person.id) : []
      const isOfNobody = identifier !== undefined && held.length === 0
      const allowed = isOfNobody ? plausibleCredentials(hmac, identifier.canonical) : held
      return { proofId, options: authenticationOptions(relyingParty, challengeOf(proofId), allowed) }
    },

    async prove(interaction, visitor, { proofId, credential, keep }, request) {
      const challenge = await takeChallenge(interaction, proofId, ['sign_in', 'mfa'])
      const passkey = challenge && (await findPasskey(query, presentedCredentialId(credential)))
      const purpose = challenge?.purpose === 'mfa' ? 'mfa' : 'sign_in'
      const person = passkey ? { id: passkey.userId } : undefined
      const attempt = {
        ...({ interaction, visitor, request, kind: 'passkey', person } as const),
        // Nobody guesses a signature: it locks nobody out, and only the address counts.
        account: keys.passkeys(visitor.origin.ip),
        policy: { ...lockoutDefaults, attempts: 1_000 },
        entered: { type: 'userId', value: passkey?.userId ?? '' } as const,
      }
      return attempts.attempt(attempt, async () => {
        if (!challenge || !passkey) return undefined
        if (purpose === 'mfa' && passkey.userId !== interaction.person?.id) return undefined
        const identified = purpose === 'mfa' ? passkey.userHandle : undefined
        const { verified } = verifyAuthentication(
          credential,
          { challenge: challenge.challenge, relyingParty },
          passkey,
          identified,
        )
        if (!verified || !(await factors.usePasskey(query, passkey.id, verified))) return undefined
        return {
          userId: passkey.userId,
          ...{ purpose, data: { factorId: passkey.id }, pendingId: proofId },
          ...(keep !== undefined && { decision: { keep } }),
        }
      })
    },

    async registration(interaction, { name, displayName, isConditional }) {
      const { person } = interaction
      const handle = (person && (await findUserHandle(query, person.id))) ?? newUserHandle()
      const id = newId()
      const proofId = await beginProof(query, {
        ...{ id, interactionId: interaction.id, userId: person?.id ?? null },
        ...{ kind: 'passkey', purpose: 'bind', secret: null, seconds: challengeSeconds },
        data: { factor: sealFactor(envelope, id, { userHandle: handle.toString('base64url'), isConditional }) },
      })
      if (proofId === undefined) return undefined
      const existing = person ? await listCredentials(query, person.id) : []
      const owner = { handle, name, displayName }
      const options = registrationOptions(relyingParty, challengeOf(proofId), owner, existing)
      return { proofId, options }
    },

    async bind(interaction, visitor, { proofId, credential }) {
      const challenge = await takeChallenge(interaction, proofId, ['bind'])
      if (!challenge) return false
      const { userHandle, isConditional } = openFactor(envelope, pendingPasskey, challenge)
      const expected = { challenge: challenge.challenge, relyingParty, isConditional }
      const { verified } = verifyRegistration(credential, expected)
      if (!verified) return false
      const factor = { userHandle, credential: toPendingCredential(verified), agent: visitor.origin.userAgent }
      const kept = await keepProof(query, {
        ...{ interactionId: interaction.id, userId: interaction.person?.id ?? null, pendingId: proofId },
        ...{ kind: 'passkey', purpose: 'bind', data: { factor: sealFactor(envelope, proofId, factor) } },
      })
      return kept !== undefined
    },
  }
}
