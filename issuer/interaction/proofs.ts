import { z } from 'zod'
import { type Acr, acrs } from '../tokens/sessions/session.ts'
import type { InteractionEventName } from './interaction-state.ts'

/** What a person can prove, as rows. A kind says what it adds to `amr` (RFC 8176) and what sort of factor it is. */
interface ProofKind {
  amr: readonly string[]
  /** Two of different categories are multi-factor authentication. */
  category: 'knowledge' | 'mailbox' | 'telephone' | 'device' | 'paper' | 'provider'
  /** It is multi-factor authentication by itself, and resists phishing: a passkey that verified its user. */
  resistsPhishing?: true
  /** It can tell who the person is. The others only add to one that does. */
  identifies: boolean
  /** Its name in the record that custom claims scripts see. */
  recordType: string
}

export const proofKinds = {
  password: { amr: ['pwd'], category: 'knowledge', identifies: true, recordType: 'Password' },
  email_code: { amr: ['otp'], category: 'mailbox', identifies: true, recordType: 'EmailVerificationCode' },
  phone_code: { amr: ['sms'], category: 'telephone', identifies: true, recordType: 'PhoneVerificationCode' },
  one_time_token: { amr: ['otp'], category: 'mailbox', identifies: true, recordType: 'OneTimeToken' },
  passkey: {
    amr: ['pop', 'user'],
    category: 'device',
    resistsPhishing: true,
    identifies: true,
    recordType: 'WebAuthn',
  },
  /** Of an enterprise connector: see `recordTypeOf`. */
  federated: { amr: ['fed'], category: 'provider', identifies: true, recordType: 'Social' },
  totp: { amr: ['otp'], category: 'device', identifies: false, recordType: 'Totp' },
  backup_code: { amr: ['otp'], category: 'paper', identifies: false, recordType: 'BackupCode' },
} as const satisfies Record<string, ProofKind>

export type ProofKindName = keyof typeof proofKinds
export const proofKindNames = Object.keys(proofKinds) as [ProofKindName, ...ProofKindName[]]

/**
 * What a proof is good for; for anything else it is none. `sign_in`: who it is, when signing in · `mfa`: a second
 * factor · `register`: an address of somebody new · `reset`: who it is, to set another password · `bind`: an address or
 * a factor that the person gets · `captcha`: a code that takes the place of the test for machines.
 */
export const proofPurposes = ['sign_in', 'mfa', 'register', 'reset', 'bind', 'captcha'] as const
export type ProofPurpose = (typeof proofPurposes)[number]

/**
 * What proofs are good for while an interaction is for this. Who registers does not prove to be somebody meanwhile:
 * nobody would ask that one for a second factor.
 */
export const purposesOf: Readonly<Record<InteractionEventName, readonly ProofPurpose[]>> = {
  SignIn: ['sign_in', 'mfa', 'bind', 'captcha'],
  Register: ['register', 'bind', 'captcha'],
  ForgotPassword: ['reset', 'captcha'],
}

/** Verified, not used yet. */
export interface Proof {
  id: string
  kind: ProofKindName
  purpose: ProofPurpose
  /** Whose it is; null for somebody new, and for an address that is nobody's. */
  userId: string | null
  data: ProofData
}

/** Who somebody is elsewhere, as an identity provider said and as we have checked. */
export const federatedIdentity = z.object({
  connectorId: z.string(),
  kind: z.enum(['social', 'sso']),
  /** How identities name the provider: `google`. Of an enterprise connector its id. */
  target: z.string(),
  subject: z.string(),
  /** Where the connector led. */
  origin: z.string().optional(),
  issuer: z.string().optional(),
  /** Only one that the provider vouches for; see `vouchedEmail`. */
  email: z.string().optional(),
  phone: z.string().optional(),
  name: z.string().optional(),
  avatar: z.string().optional(),
  raw: z.record(z.string(), z.unknown()),
  /** Name and picture are taken over at every sign-in. */
  syncProfile: z.boolean(),
  /** The identity is to become the person's, by the address. `linkingOf` is asked again before it does. */
  isByAddress: z.boolean().optional(),
})
export type FederatedIdentity = z.output<typeof federatedIdentity>

export const proofData = z.object({
  identifier: z.object({ type: z.enum(['username', 'email', 'phone']), value: z.string() }).optional(),
  /** Of the password's digest that it was held against: it proves nothing once there is another. */
  digest: z.string().optional(),
  /** Of the authenticator app, the passkey or the set of backup codes: it proves nothing once that is removed. */
  factorId: z.string().optional(),
  /** `bind`: the new factor, as `factors` stores it; secrets in it are sealed. */
  factor: z.record(z.string(), z.unknown()).optional(),
  /** `federated`. */
  federated: federatedIdentity.optional(),
})
export type ProofData = z.output<typeof proofData>
export type IdentifierType = NonNullable<ProofData['identifier']>['type']

/** Names in the record that custom claims scripts see, and in the Experience API. */
export const recordTypes = [...Object.values(proofKinds).map(({ recordType }) => recordType), 'EnterpriseSso'] as const
export type RecordType = (typeof recordTypes)[number]

export const recordTypeOf = ({ kind, data }: Pick<Proof, 'kind' | 'data'>): RecordType =>
  data.federated?.kind === 'sso' ? 'EnterpriseSso' : proofKinds[kind].recordType

const kindOf = ({ kind }: Pick<Proof, 'kind'>): ProofKind => proofKinds[kind]

export const identifies = (proof: Pick<Proof, 'kind' | 'purpose'>): boolean =>
  proof.purpose === 'sign_in' && kindOf(proof).identifies

/**
 * The proof of who somebody is, and the second factors; what they bind or register proves nothing. Two first factors do
 * not make a second one: whoever reads the mail of an account could set a password, and would have both.
 */
export const authenticating = <P extends Pick<Proof, 'kind' | 'purpose'>>(proofs: readonly P[]): P[] => {
  const first = proofs.find(identifies)
  return proofs.filter((proof) => proof === first || proof.purpose === 'mfa')
}

/** How somebody with these proofs is authenticated. At least one. */
export const authenticationBy = (proofs: readonly Pick<Proof, 'kind'>[]): { amr: string[]; acr: Acr } => {
  const kinds = proofs.map(kindOf)
  const resistsPhishing = kinds.some((kind) => kind.resistsPhishing)
  const isMultiFactor = resistsPhishing || new Set(kinds.map(({ category }) => category)).size > 1
  const [basic, mfa, phr] = acrs
  return {
    amr: [...new Set([...kinds.flatMap(({ amr }) => amr), ...(isMultiFactor ? ['mfa'] : [])])],
    acr: resistsPhishing ? phr : isMultiFactor ? mfa : basic,
  }
}

/** The strongest class that these kinds reach together. */
export const reachableAcr = (kinds: readonly ProofKindName[]): Acr =>
  authenticationBy(kinds.map((kind) => ({ kind }))).acr

export const isAtLeast = (acr: Acr, wanted: Acr): boolean => acrs.indexOf(acr) >= acrs.indexOf(wanted)

/** Whether `acr` is one of those asked for, or stronger than one. Nothing known asked for: yes. */
export const satisfiesAcr = (acr: Acr, asked: readonly string[]): boolean => {
  const known = knownAcrs(asked)
  return known.length === 0 || known.some((name) => isAtLeast(acr, name))
}

/** The weakest class that is asked for; undefined when none that is known is. */
export const weakestAcr = (asked: readonly string[]): Acr | undefined =>
  knownAcrs(asked).toSorted((one, other) => acrs.indexOf(one) - acrs.indexOf(other))[0]

const knownAcrs = (asked: readonly string[]): Acr[] =>
  asked.filter((name): name is Acr => acrs.some((one) => one === name))
