import type { Query } from '../../platform/database/database.ts'
import { findConsent } from '../tokens/consents/consent-store.ts'
import { findSession } from '../tokens/sessions/session-store.ts'
import type { Interaction } from './interaction-store.ts'
import { type Situation, whoIsIt } from './next-step.ts'
import type { PersonFacts } from './person-facts.ts'
import { holdPerson } from './person-store.ts'
import { authenticating, authenticationBy, identifies, type Proof } from './proofs.ts'
import { provenAddress } from './required-profile.ts'
import { isEnabled, type SignInDecision, type SignInSettings } from './settings.ts'
import type { Visitor } from './visitor.ts'

/** What the rules are asked about a person who stands before the issuer. */
export interface DecisionQuestion {
  /** `mfa`: before a second factor is asked for. `finish`: nothing else is missing. */
  stage: 'mfa' | 'finish'
  interaction: Interaction
  /** Null: somebody new. */
  userId: string | null
  person: PersonFacts
  proofs: readonly Proof[]
  amr: readonly string[]
  acr: string
  visitor: Visitor
}

export type DecideSignIn = (query: Query, question: DecisionQuestion) => Promise<SignInDecision | undefined>

export interface SituationDependencies {
  settings: () => SignInSettings
  decide: DecideSignIn
}

/** `hold`: keeps the person's row until the transaction ends, so that nobody adds to a consent meanwhile. */
export type SituationOf = (
  query: Query,
  interaction: Interaction,
  visitor: Visitor,
  options?: { hold?: boolean },
) => Promise<Situation>

/** Everything `nextStep` asks for. In a transaction that holds the interaction's row it stays so until its end. */
export const createSituationOf =
  ({ settings: settingsOf, decide }: SituationDependencies): SituationOf =>
  async (query, interaction, visitor, { hold = false } = {}) => {
    const { event, client, request, state, staged } = interaction
    const settings = settingsOf()
    const proofs = interaction.proofs.filter((proof) => isEnabled(settings, proof))
    const session = visitor.session === undefined ? undefined : await findSession(query, visitor.session)
    const person = personOf(interaction, proofs)
    const userId = whoIsIt({ event, session, proofs })
    const decision =
      person && event !== 'ForgotPassword'
        ? await decide(query, {
            stage: 'mfa',
            interaction,
            userId: userId ?? null,
            person,
            proofs,
            ...authenticationOf(proofs),
            visitor,
          })
        : undefined
    const needsConsent = client.isThirdParty && userId !== undefined
    if (needsConsent && hold) await holdPerson(query, userId)
    const consent = needsConsent ? await findConsent(query, userId, client.id) : undefined
    return { event, request, client, settings, session, proofs, staged, person, decision, consent, state }
  }

const authenticationOf = (proofs: readonly Proof[]) => {
  const counted = authenticating(proofs)
  return counted.length > 0 ? authenticationBy(counted) : { amr: [], acr: '' }
}

/** Whom something was proven of, here. Somebody new has what was proven, and nothing else. */
const personOf = (
  { event, person, staged }: Pick<Interaction, 'event' | 'person' | 'staged'>,
  proofs: readonly Proof[],
): PersonFacts | undefined => {
  if (event !== 'Register') return proofs.some(identifies) || event === 'ForgotPassword' ? person : undefined
  return {
    id: '',
    isSuspended: false,
    hasPassword: staged.password !== undefined,
    isPasswordExpired: false,
    hasUsername: staged.username !== undefined,
    hasEmail: provenAddress(proofs, 'email') !== undefined,
    hasPhone: provenAddress(proofs, 'phone') !== undefined,
    hasTotp: false,
    passkeys: 0,
    backupCodes: 0,
    hasSkippedMfa: false,
    isMfaRequired: false,
  }
}
