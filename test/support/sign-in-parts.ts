import type { SealedConnector, SenderType } from '../../deliveries/messages/connector-store.ts'
import type { MessageConfig } from '../../deliveries/messages/settings.ts'
import type { TokenAudit } from '../../issuer/base/audit/token-audit.ts'
import type { Hmac } from '../../issuer/base/hmac-keys-store.ts'
import { createCaptcha } from '../../issuer/captcha/captcha.ts'
import type { CaptchaSettings } from '../../issuer/captcha/captcha-settings.ts'
import { createFederation } from '../../issuer/connectors/federation.ts'
import type { SignInExperience } from '../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { openBreachedPasswords } from '../../issuer/directory/users/password-policy/breached/open-breached-passwords.ts'
import { createPasswordRules } from '../../issuer/directory/users/password-policy/password-rules.ts'
import { createSignInPolicy } from '../../issuer/interaction/sign-in-policy.ts'
import { createMessages } from '../../issuer/messages/messages.ts'
import { createNotifyOwner } from '../../issuer/messages/owner-notices.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import type { Logger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import type { PolicySet } from '../../policies/policy-set.ts'
import { easyCaptcha } from './proof-of-work.ts'
import { shipped } from './shared-parts.ts'

/** What signing in is made of beside the database, as the issuer makes it, for tests that begin below the issuer. */
export const createSignInParts = async ({
  database: { query },
  envelope,
  hmac,
  audit,
  events,
  baseUrl,
  logger,
  config,
  senderOf = () => undefined,
  experience,
  policies,
  captcha = easyCaptcha,
}: {
  database: Pick<Database, 'query'>
  envelope: Envelope
  hmac: Hmac
  audit: TokenAudit
  events: { wake(): void }
  baseUrl: string
  logger: Logger
  /** Of messages. */
  config: MessageConfig
  /** Default: there are no connectors. */
  senderOf?: (type: SenderType) => SealedConnector | undefined
  experience: () => SignInExperience
  /** Of the operator. Default: the shipped rules decide. */
  policies?: PolicySet | undefined
  captcha?: CaptchaSettings | undefined
}) => {
  const metrics = createMetrics()
  const messages = createMessages({ query, senderOf, envelope, hmac, config, baseUrl, events })
  const fallbackLanguage = () => experience().languageInfo.fallbackLanguage
  return {
    metrics,
    federation: createFederation({
      ...{ database: { query }, envelope, experience, mocks: false, now: () => new Date() },
      outbound: { allowedNetworks: config.allowedNetworks },
    }),
    messages,
    notifyOwner: createNotifyOwner({ messages, fallbackLanguage, logger }),
    policy: await createSignInPolicy({
      policies: policies && { current: () => policies },
      shipped: await shipped(),
      logger,
      metrics,
    }),
    captcha: createCaptcha({ query, hmac, settings: captcha, logger, metrics }),
    passwordRules: createPasswordRules({ experience, breached: await openBreachedPasswords({}, { audit }) }),
  }
}
