import { createIdentityProviderStore } from '../../issuer/connectors/providers/identity-provider-store.ts'
import type { SignInExperience } from '../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import {
  type AuthenticationCredential,
  createFactors,
  findPasskey,
  matchingStep,
  newTotpSecret,
  newUserHandle,
  presentedCredentialId,
  type RegistrationCredential,
  readTotpSecret,
  relyingPartyOf,
  verifyAuthentication,
  verifyRegistration,
} from '../../issuer/directory/users/factors/index.ts'
import { hotp } from '../../issuer/directory/users/factors/totp.ts'
import { linkIdentity } from '../../issuer/interaction/identity-store.ts'
import { findInteraction, type Interaction } from '../../issuer/interaction/interaction-store.ts'
import { nextStep } from '../../issuer/interaction/next-step.ts'
import { beginProof } from '../../issuer/interaction/proof-store.ts'
import type { SignInQuestion } from '../../issuer/interaction/sign-in-policy.ts'
import { newId } from '../../platform/ids.ts'
import { createAuthenticator } from '../../testing/authenticator.ts'
import { answerCalls, ownCpuMicros } from '../harness/calls.ts'
import { percentile } from '../harness/percentiles.ts'
import type { ProviderAddress } from './identity-provider.ts'
import { type OperationsSettings, openOperations } from './open-operations.ts'

export type ProofSettings = OperationsSettings & {
  userId: string
  email: string
  /** Of somebody who has done nothing yet. */
  interactionId: string
  provider: ProviderAddress
}

/** `micros`: median of what one takes. `cpuMicros`: of this process, a mean. */
export type ProofCost = { name: string; micros: number; cpuMicros: number }

type Operations = Awaited<ReturnType<typeof openOperations>>

/** Each of them is done so often, after a fifth as many that are not counted. */
const times = 500
const stepSeconds = 30

let opened: Operations
let settings: ProofSettings
let clock = new Date()

/** A code by mail is the first factor, an authenticator app the second. */
const experience: Partial<SignInExperience> = {
  signIn: { methods: [{ identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: true }] },
  mfa: { factors: ['Totp'], policy: 'Mandatory' },
  socialSignInConnectorTargets: ['bench'],
}

const ip = '203.0.113.7'
const origin = { ip, userAgent: 'A browser' }
const visitor = {
  ...{ session: undefined, browser: undefined, device: undefined, acceptLanguage: undefined, isEmbedded: false },
  ...{ origin, signInContext: { ip } },
}
const request = { ...origin, method: 'POST', path: '/', matchedRoute: '/', params: {}, status: 303 }

/** `prepare` is not measured. `work` throws when it comes out wrong. */
const costOf = async <Prepared>(
  name: string,
  prepare: (number: number) => Promise<Prepared> | Prepared,
  work: (prepared: Prepared) => Promise<unknown> | unknown,
): Promise<ProofCost> => {
  const took: number[] = []
  let cpu = 0
  for (let number = -times / 5; number < times; number++) {
    const prepared = await prepare(number)
    const before = ownCpuMicros()
    const begun = performance.now()
    await work(prepared)
    const ms = performance.now() - begun
    if (number < 0) continue
    took.push(ms)
    cpu += ownCpuMicros() - before
  }
  return { name, micros: percentile(took, 0.5) * 1_000, cpuMicros: cpu / times }
}

const requireRight = (isRight: boolean, what: string) => {
  if (!isRight) throw new Error(`${what} was refused`)
}

const measure = async (): Promise<ProofCost[]> => {
  const { database, envelope, hmac, operations, policy } = opened
  const { query } = database
  const { userId, email, interactionId, baseUrl } = settings
  const factors = createFactors({ envelope, hmac })
  const relyingParty = relyingPartyOf(baseUrl)

  const secret = newTotpSecret()
  const secretBytes = readTotpSecret(secret)!
  await database.transaction((trx) => factors.bindTotp(trx, { userId, secret }))
  /** A step is good once: each time it is half a minute later. */
  const nextTotp = () => {
    clock = new Date(clock.getTime() + stepSeconds * 1_000)
    return hotp(secretBytes, Math.floor(clock.getTime() / 1_000 / stepSeconds))
  }

  const authenticator = createAuthenticator({ origin: relyingParty.origins[0]!, algorithm: -7 })
  const userHandle = newUserHandle()
  const challenge = 'bench'
  const created = authenticator.create({
    rp: { id: relyingParty.id },
    user: { id: userHandle.toString('base64url') },
    challenge,
    pubKeyCredParams: [{ alg: -7 }],
  })
  const { verified: credential } = verifyRegistration(created as RegistrationCredential, { challenge, relyingParty })
  if (!credential) throw new Error('the passkey was refused')
  await database.transaction((trx) => factors.bindPasskey(trx, { userId, userHandle, credential }))
  const assertion = () => authenticator.get({ challenge, rpId: relyingParty.id }) as AuthenticationCredential
  const passkey = (await findPasskey(query, presentedCredentialId(assertion())))!

  const interaction = async () => (await findInteraction(query, interactionId))!
  /** As the database has one whose code was sent. */
  const waitingCode = async () => {
    const id = newId()
    const code = '123456'
    await beginProof(query, {
      ...{ id, interactionId, userId: null, kind: 'email_code', purpose: 'sign_in', seconds: 600 },
      data: { identifier: { type: 'email', value: email } },
      secret: hmac('verification-codes', id, code),
    })
    return { id, code, interaction: await interaction() }
  }
  const backupCodes: string[] = []
  const nextBackupCode = async () => {
    if (backupCodes.length === 0)
      backupCodes.push(...(await database.transaction((trx) => factors.replaceBackupCodes(trx, userId))))
    return backupCodes.pop()!
  }

  const costs = [
    await costOf('TOTP: the code against the secret', nextTotp, (code) =>
      requireRight(matchingStep(secretBytes, code, clock) !== undefined, 'a code'),
    ),
    await costOf('TOTP: and its step used up', nextTotp, async (code) =>
      requireRight((await factors.useTotp(query, { userId, code, now: clock })) !== undefined, 'a code'),
    ),
    await costOf('backup code: used up', nextBackupCode, async (code) =>
      requireRight((await factors.useBackupCode(query, { userId, code })) !== undefined, 'a backup code'),
    ),
    await costOf('passkey (ES256): the assertion', assertion, (answer) => {
      const { verified } = verifyAuthentication(answer, { challenge, relyingParty }, passkey)
      requireRight(verified !== undefined, 'an assertion')
    }),
    await costOf('passkey (ES256): looked up, and its use kept', assertion, async (answer) => {
      const found = await findPasskey(query, presentedCredentialId(answer))
      const { verified } = verifyAuthentication(answer, { challenge, relyingParty }, found!)
      requireRight(verified !== undefined && (await factors.usePasskey(query, found!.id, verified)), 'an assertion')
    }),
    await costOf('code by mail: the whole attempt', waitingCode, async ({ id, code, interaction: current }) => {
      const attempt = await operations.codes.verify(current, visitor, { proofId: id, code }, request)
      requireRight(attempt.outcome === 'verified', 'a code')
    }),
    await costOf(
      'TOTP: the whole attempt',
      async () => ({ code: nextTotp(), current: await interaction() }),
      async ({ code, current }) => {
        const attempt = await operations.secondFactors.prove(current, visitor, { kind: 'totp', code }, request)
        requireRight(attempt.outcome === 'verified', 'a code')
      },
    ),
  ]
  // A provider's tokens are of today.
  clock = new Date()
  costs.push(...(await federationCosts(interaction)))
  const current = await interaction()
  const { situation } = await operations.standingOf(query, current, visitor)
  if (situation.decision === undefined) throw new Error('the rules were not asked')
  const withOrganizations = (organizations: string[]): SignInQuestion => ({
    stage: 'mfa',
    client: { id: current.client.id, name: current.client.name, type: current.client.type, isThirdParty: false },
    subject: { id: userId, roles: [], organizations: [] },
    factors: { available: ['totp'], used: ['email_code'] },
    ...{ amr: ['otp'], acr: 'urn:surrogate:acr:basic', ip, device: { known: false }, failures: 0 },
    now: Math.floor(Date.now() / 1_000),
    settings: { mfa: { policy: 'NoPrompt', factors: ['totp'], organizationPolicy: 'Mandatory', organizations } },
  })
  return [
    ...costs,
    await costOf(
      'the rules: one decision, evaluated',
      // What they read and have not been asked about lately.
      (number) => withOrganizations([`organization-${number}`]),
      (anew) => requireRight(policy.decideSignIn(anew).allow, 'somebody'),
    ),
    await costOf(
      'the rules: one decision, from memory',
      () => withOrganizations([]),
      (known) => requireRight(policy.decideSignIn(known).allow, 'somebody'),
    ),
    await costOf(
      'nextStep, of what is known',
      () => {},
      () => nextStep(situation),
    ),
    await costOf(
      'what comes next: rules and nextStep, twice where nothing is missing',
      () => {},
      () => operations.standingOf(query, current, visitor),
    ),
  ]
}

/** Of somebody whom a provider knows: discovery and keys are known by then, code and userinfo are asked for each time. */
const federationCosts = async (interaction: () => Promise<Interaction>): Promise<ProofCost[]> => {
  const { database, envelope, operations } = opened
  const { userId, baseUrl, provider } = settings
  const connectorId = newId()
  await createIdentityProviderStore(envelope).insert(database.query, {
    kind: 'social',
    ...{ id: connectorId, provider: 'oidc', name: null, target: 'bench', config: { ...provider } },
    ...{ domains: [], syncProfile: false, look: {} },
  })
  const person = {
    connectorId,
    kind: 'social',
    target: 'bench',
    subject: '7305177',
    raw: {},
    syncProfile: false,
  } as const
  await linkIdentity(database.query, userId, person)
  const page = { state: 'of the page', redirectUri: `${baseUrl}/callback/${connectorId}` }
  let address = 0
  /** Each from an address of its own, which may ask a hundred times. */
  const begin = async (current: Interaction) => {
    const from = { ...visitor, origin: { ...origin, ip: `2001:db8:${(++address).toString(16)}::1` } }
    const begun = await operations.federated.begin(current, from, { connectorId, purpose: 'sign_in', page })
    if (begun.outcome !== 'begun') throw new Error(begun.outcome)
    return begun
  }
  const answered = async () => {
    const current = await interaction()
    const { url, proofId } = await begin(current)
    const { headers } = await fetch(url, { redirect: 'manual' })
    const parameters = new URL(headers.get('location') ?? '').searchParams
    return { current, answer: { connectorId, proofId, parameters } }
  }
  return [
    await costOf('identity provider: the request', interaction, begin),
    await costOf('identity provider: its answer, to the proof', answered, async ({ current, answer }) => {
      const { outcome } = await operations.federated.verify(current, visitor, answer)
      requireRight(outcome === 'verified', 'an answer')
    }),
  ]
}

answerCalls({
  start: async (given: ProofSettings) => {
    settings = given
    opened = await openOperations(given, { experience, now: () => clock })
  },
  measure,
  stop: () => opened?.stop(),
})
