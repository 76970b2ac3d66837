import type { Database } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import type { TokenAudit } from '../base/audit/token-audit.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import type { NotifyOwner } from '../base/owner-notices.ts'
import type { Captcha } from '../captcha/captcha.ts'
import type { Federation } from '../connectors/federation.ts'
import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import { createFactors, relyingPartyOf } from '../directory/users/factors/index.ts'
import { type LockoutPolicy, lockoutPolicyOf } from '../directory/users/lockout/lockout-policy.ts'
import type { PasswordHasher } from '../directory/users/password.ts'
import type { PasswordRules } from '../directory/users/password-policy/password-rules.ts'
import { readUsernamePolicy } from '../directory/users/registration-rules/username-policy.ts'
import type { Messages } from '../messages/messages.ts'
import { createLocaleOf } from '../pages/index.ts'
import { type AccountFederation, createAccountFederation } from './account-federation.ts'
import { createAccountKey } from './account-key.ts'
import { createAttempts } from './attempts.ts'
import { createBecomePerson } from './become-person.ts'
import { createBindings } from './bindings.ts'
import { type CaptchaGate, createCaptchaGate } from './captcha-gate.ts'
import { type CodeProofs, createCodeProofs } from './code-proof.ts'
import { createDecideSession, createDecideSignIn } from './decide-sign-in.ts'
import { createEnrolment, type Enrolment } from './enrolment.ts'
import { createFederatedProofs, type FederatedProofs } from './federated-proof.ts'
import { createFederationRequests, type FederationRequests } from './federation-requests.ts'
import { createFinish, type Finish, type FinishDependencies } from './finish.ts'
import type { Interaction } from './interaction-store.ts'
import { createNotices } from './notices.ts'
import { createOneTimeTokenProofs, type OneTimeTokenProofs } from './one-time-token-proof.ts'
import { createPasskeyProofs, type PasskeyProofs } from './passkey-proof.ts'
import { createPasswordProofs, type PasswordProofs } from './password-proof.ts'
import { createSecondFactorProofs, type SecondFactorProofs } from './second-factor-proofs.ts'
import type { SignInPolicy } from './sign-in-policy.ts'
import { whoIsIt } from './situation.ts'
import { createStaging, type Staging } from './staging.ts'
import { createStandingOf, type Standing, type StandingOf } from './standing.ts'
import type { Visitor } from './visitor.ts'

/** An interaction, also one that has no row. */
type Blocked = Pick<Interaction, 'event' | 'client'> & { id?: string }

/** Everything that can be done in an interaction: pages and the Experience API call the same. */
export interface InteractionOperations {
  /** What is due now, and why. */
  standingOf: StandingOf
  passwords: PasswordProofs
  codes: CodeProofs
  secondFactors: SecondFactorProofs
  passkeys: PasskeyProofs
  oneTimeTokens: OneTimeTokenProofs
  federated: FederatedProofs
  accountFederation: AccountFederation
  federationRequests: Pick<FederationRequests, 'awaitedBy'>
  enrolment: Enrolment
  staging: Staging
  captchas: CaptchaGate
  finish: Finish
  /** Notes for the operator, once, why somebody does not get on; the page tells less. */
  noteBlocked(interaction: Blocked, visitor: Visitor, standing: Standing, requestId?: string): void
}

export interface InteractionOperationsDependencies
  extends Pick<FinishDependencies, 'events' | 'cookies' | 'issuer' | 'sessionLimits'> {
  database: Database
  envelope: Envelope
  hmac: Hmac
  passwords: PasswordHasher
  messages: Messages
  notifyOwner: NotifyOwner
  audit: TokenAudit
  policy: SignInPolicy
  captcha: Captcha
  federation: Federation
  passwordRules: PasswordRules
  settings: () => SignInExperience
  /** Where browsers reach the issuer. */
  baseUrl: string
  now: () => Date
}

export const createInteractionOperations = async ({
  database,
  envelope,
  hmac,
  passwords,
  messages,
  notifyOwner,
  audit,
  policy,
  captcha,
  federation,
  passwordRules,
  settings,
  baseUrl,
  now,
  ...finishing
}: InteractionOperationsDependencies): Promise<InteractionOperations> => {
  const { query } = database
  const captchas = createCaptchaGate({ query, captcha, policy, settings, now })
  const attempts = createAttempts({ database, events: finishing.events, hmac, audit, captchas })
  const accountKey = createAccountKey({ query, hmac })
  const factors = createFactors({ envelope, hmac })
  const notices = createNotices({ notifyOwner, localeOf: createLocaleOf(settings) })
  const lockout = (): LockoutPolicy => lockoutPolicyOf(settings())
  const decide = createDecideSignIn({ policy, hmac, lockout, now })
  const decideSession = createDecideSession({ policy, decide })
  const requests = createFederationRequests({ query, federation, envelope, hmac, settings, baseUrl })
  const federated = createFederatedProofs({ database, federation, requests, audit, settings })
  const { enterpriseOf } = federated
  const standingOf = createStandingOf({ settings, decide, decideSession, enterpriseOf, now })
  const becomePerson = createBecomePerson({
    bindings: createBindings({ envelope, factors }),
    isStillFrom: federation.isStillFrom,
    isUsernameCaseSensitive: () => readUsernamePolicy(settings().usernamePolicy).caseSensitive,
  })
  return {
    standingOf,
    passwords: await createPasswordProofs({ database, attempts, accountKey, captchas, passwords, lockout }),
    codes: createCodeProofs({ database, attempts, accountKey, captchas, hmac, messages, lockout, settings }),
    secondFactors: createSecondFactorProofs({ database, attempts, factors, notices, hmac, now }),
    passkeys: createPasskeyProofs({
      ...{ query, attempts, accountKey, factors, envelope, hmac },
      relyingParty: relyingPartyOf(baseUrl),
    }),
    oneTimeTokens: createOneTimeTokenProofs({ database, attempts, accountKey, lockout }),
    federated,
    accountFederation: createAccountFederation({ query, requests, audit }),
    federationRequests: requests,
    enrolment: createEnrolment({ query, envelope, now }),
    staging: createStaging({ database, hmac, passwords, passwordRules, settings }),
    captchas,
    finish: createFinish({ ...finishing, database, standingOf, becomePerson, notices }),
    noteBlocked({ id, event, client }, { origin }, { situation, step: { reasons, options } }, requestId) {
      const userId = whoIsIt(situation) ?? undefined
      const place = id ?? [situation.session?.id, client.id].join(' ')
      audit.record({
        key: `Interaction.${event}.Blocked`,
        result: 'Error',
        applicationId: client.id,
        userId,
        once: ['blocked', place, event, userId, ...reasons, options.description].join(' '),
        payload: {
          interactionId: id,
          requestId,
          ip: origin.ip,
          userAgent: origin.userAgent,
          reasons,
          reason: options.description,
        },
      })
    },
  }
}
