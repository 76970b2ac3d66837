import { noMessages } from '../../deliveries/messages/settings.ts'
import { createNotifier } from '../../events/notifier.ts'
import { createPostgresBus } from '../../events/postgres-bus.ts'
import { createPublisher } from '../../events/publisher.ts'
import { createTokenAudit } from '../../issuer/base/audit/token-audit.ts'
import { createCookies } from '../../issuer/base/cookies.ts'
import { createHmacs } from '../../issuer/base/hmac-keys-store.ts'
import { createCaptcha } from '../../issuer/captcha/captcha.ts'
import { captchaDefaults } from '../../issuer/captcha/captcha-settings.ts'
import { createFederation } from '../../issuer/connectors/federation.ts'
import { createSettings } from '../../issuer/directory/sign-in-experience/settings.ts'
import { settingsChannel } from '../../issuer/directory/sign-in-experience/settings-revision-store.ts'
import type { SignInExperience } from '../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { createPasswordHasher } from '../../issuer/directory/users/password.ts'
import { openBreachedPasswords } from '../../issuer/directory/users/password-policy/breached/open-breached-passwords.ts'
import { createPasswordRules } from '../../issuer/directory/users/password-policy/password-rules.ts'
import { createInteractionOperations } from '../../issuer/interaction/operations.ts'
import { createSignInPolicy } from '../../issuer/interaction/sign-in-policy.ts'
import { createMessages } from '../../issuer/messages/messages.ts'
import { createNotifyOwner } from '../../issuer/messages/owner-notices.ts'
import { createDatabase } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import type { Connection } from '../harness/database-store.ts'

export type OperationsSettings = {
  connection: Connection
  /** As the issuer's that began the interactions, in hex. */
  key: string
  baseUrl: string
}

/**
 * What can be done in an interaction, as pages and the Experience API call it, with the rules and limits as shipped.
 * `experience`: settings that count instead of those in the database.
 */
export const openOperations = async (
  { connection, key, baseUrl }: OperationsSettings,
  { experience = {}, now = () => new Date() }: { experience?: Partial<SignInExperience>; now?: () => Date } = {},
) => {
  const logger = createLogger({ name: 'operations', level: 'warn' })
  const metrics = createMetrics()
  const database = createDatabase({ connection, logger })
  const { query } = database
  const bus = createPostgresBus({ database, logger })
  const events = createPublisher({ database, bus, logger })
  const envelope = createEnvelope({ current: Buffer.from(key, 'hex') })
  const hmac = await createHmacs(database, envelope)
  const audit = createTokenAudit({ database, logger })
  const notifier = createNotifier({ database, logger, channel: settingsChannel })
  const stored = await createSettings({ database, notifier, logger })
  const settings = () => ({ ...stored.experience(), ...experience })
  const policy = await createSignInPolicy({ logger, metrics })
  const captcha = createCaptcha({ query, hmac, settings: captchaDefaults, logger, metrics })
  const breached = await openBreachedPasswords({}, { audit })
  const messages = createMessages({
    ...{ query, senderOf: stored.sender, envelope, hmac, config: noMessages, baseUrl, events },
  })
  const notifyOwner = createNotifyOwner({ messages, fallbackLanguage: () => 'en', logger })
  const federation = createFederation({
    ...{ database, envelope, experience: settings, memory: stored.memory, mocks: false, now },
    outbound: { allowedNetworks: ['127.0.0.0/8'] },
  })
  const operations = await createInteractionOperations({
    ...{
      database,
      envelope,
      hmac,
      messages,
      notifyOwner,
      audit,
      policy,
      captcha,
      federation,
      settings,
      baseUrl,
      events,
      now,
    },
    passwords: createPasswordHasher(),
    passwordRules: createPasswordRules({ experience: settings, breached }),
    cookies: createCookies({ secure: false }),
    issuer: `${baseUrl}/oidc`,
    sessionLimits: async () => stored.session(),
  })
  return {
    ...{ database, envelope, hmac, operations, policy, settings },
    stop: async () => {
      await stored.close()
      await notifier.close()
      await captcha.close()
      await federation.close()
      await breached.close()
      await audit.close()
      await events.close()
      await bus.close()
      await database.close()
    },
  }
}
