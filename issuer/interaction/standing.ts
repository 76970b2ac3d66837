import type { Query } from '../../platform/database/database.ts'
import { findConsent } from '../tokens/consents/consent-store.ts'
import { type FoundSession, findSession } from '../tokens/sessions/session-store.ts'
import type { DecideSession, DecideSignIn } from './decide-sign-in.ts'
import type { FederatedProofs } from './federated-proof.ts'
import type { Interaction } from './interaction-store.ts'
import { nextStep } from './next-step.ts'
import type { PersonFacts } from './person-facts.ts'
import { holdPerson } from './person-store.ts'
import { identifies, type Proof, type ProofPurpose, purposesOf } from './proofs.ts'
import { provenAddress } from './required-profile.ts'
import { isEnabled, isPasswordExpired, type SignInSettings } from './settings.ts'
import { type Situation, whoIsIt } from './situation.ts'
import type { Step, StepName } from './step.ts'
import type { Visitor } from './visitor.ts'

export interface Standing {
  situation: Situation & { session: FoundSession | undefined }
  step: Step
}

/** What an interaction is about, also one that has no row yet. */
export type Asked = Pick<Interaction, 'event' | 'client' | 'request' | 'state' | 'staged' | 'person' | 'proofs'>

/**
 * Where an interaction stands, of everything that `nextStep` asks for. In a transaction that holds the interaction's
 * row it stays so until its end; `hold` keeps the person's row too, so that nobody adds to a consent meanwhile. Throws
 * 503 when the rules give no decision.
 */
export type StandingOf = (
  query: Query,
  interaction: Asked,
  visitor: Visitor,
  options?: { hold?: boolean },
) => Promise<Standing>

export const createStandingOf =
  ({
    settings: settingsOf,
    decide,
    decideSession,
    enterpriseOf,
    now,
  }: {
    settings: () => SignInSettings
    decide: DecideSignIn
    decideSession: DecideSession
    enterpriseOf: FederatedProofs['enterpriseOf']
    now: () => Date
  }): StandingOf =>
  async (query, interaction, visitor, { hold = false } = {}) => {
    const { event, client, request, state, staged } = interaction
    const settings = settingsOf()
    const enabled = interaction.proofs.filter(
      (proof) => purposesOf[event].includes(proof.purpose) && isEnabled(settings, proof),
    )
    const proofs = await withoutThoseOfEnterprises(enabled, enterpriseOf)
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
    if (!person) {
      if (!session || event !== 'SignIn' || !bySession.has(step.step)) return { situation, step }
      return decidedBy(situation, await decideSession(query, { client, settings, session, visitor }))
    }
    // Rules may look at the whole of it only now.
    return step.step === 'done' ? decidedBy(situation, await ask('finish')) : { situation, step }
  }

/** The purposes of proofs that begin something by an address. */
const beginning: readonly ProofPurpose[] = ['sign_in', 'register']

/** People of an enterprise sign in there: their address opens nothing in another way, whatever page it was typed on. */
const withoutThoseOfEnterprises = async (
  proofs: readonly Proof[],
  enterpriseOf: FederatedProofs['enterpriseOf'],
): Promise<readonly Proof[]> => {
  const counting: Proof[] = []
  for (const proof of proofs) {
    const { kind, purpose, data } = proof
    const isTyped = kind !== 'federated' && kind !== 'one_time_token' && data.identifier?.type === 'email'
    const address = isTyped && beginning.includes(purpose) ? data.identifier?.value : undefined
    if (address === undefined || !(await enterpriseOf(address))) counting.push(proof)
  }
  return counting
}

/** What a session leads to without a proof. */
const bySession: ReadonlySet<StepName> = new Set(['done', 'consent'])

const decidedBy = (known: Standing['situation'], decision: Situation['decision']): Standing => {
  const situation = { ...known, decision }
  return { situation, step: nextStep(situation) }
}

/** Whom something was proven of, here. Somebody new has what was proven, and nothing else. */
const personOf = (
  { event, person, staged }: Pick<Asked, 'event' | 'person' | 'staged'>,
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
    hasIdentity: proofs.some(({ kind }) => kind === 'federated'),
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
