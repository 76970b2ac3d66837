import type { Query } from '../../platform/database/database.ts'
import { findConsent } from '../tokens/consents/consent-store.ts'
import { findSession } from '../tokens/sessions/session-store.ts'
import type { DecideSignIn } from './decide-sign-in.ts'
import type { Interaction } from './interaction-store.ts'
import { nextStep } from './next-step.ts'
import type { PersonFacts } from './person-facts.ts'
import { holdPerson } from './person-store.ts'
import { identifies, type Proof, purposesOf } from './proofs.ts'
import { provenAddress } from './required-profile.ts'
import { isEnabled, isPasswordExpired, type SignInSettings } from './settings.ts'
import { type Situation, whoIsIt } from './situation.ts'
import type { Step } from './step.ts'
import type { Visitor } from './visitor.ts'

export interface Standing {
  situation: Situation
  step: Step
}

/**
 * Where an interaction stands, of everything that `nextStep` asks for. In a transaction that holds the interaction's
 * row it stays so until its end; `hold` keeps the person's row too, so that nobody adds to a consent meanwhile. Throws
 * 503 when the rules give no decision.
 */
export type StandingOf = (
  query: Query,
  interaction: Interaction,
  visitor: Visitor,
  options?: { hold?: boolean },
) => Promise<Standing>

export const createStandingOf =
  ({
    settings: settingsOf,
    decide,
    now,
  }: {
    settings: () => SignInSettings
    decide: DecideSignIn
    now: () => Date
  }): StandingOf =>
  async (query, interaction, visitor, { hold = false } = {}) => {
    const { event, client, request, state, staged } = interaction
    const settings = settingsOf()
    const proofs = interaction.proofs.filter(
      (proof) => purposesOf[event].includes(proof.purpose) && isEnabled(settings, proof),
    )
    const session = visitor.session === undefined ? undefined : await findSession(query, visitor.session)
    const person = personOf(interaction, proofs, settings, now())
    const userId = whoIsIt({ event, session, proofs })
    const needsConsent = client.isThirdParty && userId !== undefined
    if (needsConsent && hold) await holdPerson(query, userId)
    const consent = needsConsent ? await findConsent(query, userId, client.id) : undefined
    const known = { event, request, client, settings, session, proofs, staged, person, consent, state }

    const ask = (stage: 'mfa' | 'finish') =>
      person && event !== 'ForgotPassword'
        ? decide(query, { stage, client, settings, person, userId, proofs, visitor })
        : undefined
    const situation = { ...known, decision: await ask('mfa') }
    const step = nextStep(situation)
    if (step.step !== 'done' || !person) return { situation, step }
    // Rules may look at the whole of it only now.
    const decision = await ask('finish')
    const finished = { ...situation, decision }
    return { situation: finished, step: nextStep(finished) }
  }

/** Whom something was proven of, here. Somebody new has what was proven, and nothing else. */
const personOf = (
  { event, person, staged }: Pick<Interaction, 'event' | 'person' | 'staged'>,
  proofs: readonly Proof[],
  settings: SignInSettings,
  now: Date,
): PersonFacts | undefined => {
  if (event !== 'Register') {
    const isNamed = event === 'ForgotPassword' || proofs.some(identifies)
    return person && isNamed ? { ...person, isPasswordExpired: isPasswordExpired(settings, person, now) } : undefined
  }
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
    hasSkippedPasskey: false,
    mfaOrganizations: [],
  }
}
