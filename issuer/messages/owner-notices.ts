import { UnreadableConnector } from '../../deliveries/messages/connector-store.ts'
import type { Logger } from '../../platform/logger.ts'
import type { NotifyOwner, OwnerNotice } from '../base/owner-notices.ts'
import type { Messages, NewMessage } from './messages.ts'
import { catalogueOf, hasCatalogue } from './texts/catalogues.ts'
import type { Texts } from './texts/translation.ts'

type Variables = Readonly<Record<string, string>>
type VariablesOf = { [Type in OwnerNotice['type']]: (notice: OwnerNotice & { type: Type }, texts: Texts) => Variables }

const factorOf = ({ factor }: OwnerNotice & { type: 'FactorAdded' | 'FactorRemoved' }, texts: Texts) => ({
  factor: texts[`factor${factor}`],
})

/** What each notice says, in the words of its language. */
const variablesOf: VariablesOf = {
  PasswordChanged: () => ({}),
  FactorAdded: factorOf,
  FactorRemoved: factorOf,
  IdentityLinked: ({ provider }) => ({ provider }),
  IdentityUnlinked: ({ provider }) => ({ provider }),
  NewDevice: ({ device }, texts) => ({ device: device || texts.unknownDevice }),
  BackupCodeUsed: ({ left }) => ({ left: String(left) }),
  AddressChanged: ({ address }, texts) => ({ address: address ?? texts.noAddress }),
  ImpersonationRequested: ({ actor, reason, number, link }, texts) => ({
    ...{ actor, reason: reason ?? texts.noReason, number, link },
  }),
  ImpersonationStarted: ({ actor, reason }, texts) => ({ actor, reason: reason ?? texts.noReason }),
  ImpersonationEnded: ({ actor }) => ({ actor }),
}

export interface OwnerNoticeDependencies {
  messages: Pick<Messages, 'send'>
  /** Of people of whom nothing else is known. */
  fallbackLanguage: () => string
  logger: Logger
}

export const createNotifyOwner =
  ({ messages, fallbackLanguage, logger }: OwnerNoticeDependencies): NotifyOwner =>
  async (trx, owner, notice, { locale: ofBrowser, ip } = {}) => {
    const { id: userId, primary_email: email, primary_phone: phone, profile } = owner
    const known = email === null ? { channel: 'sms' as const, to: phone } : { channel: 'email' as const, to: email }
    const { channel, to } = notice.type === 'AddressChanged' ? notice.from : known
    if (to === null) return
    const locale = [ofBrowser, profile?.locale, fallbackLanguage()].find(hasCatalogue) ?? 'en'
    const variablesFor = variablesOf[notice.type] as (notice: OwnerNotice, texts: Texts) => Variables
    const variables = variablesFor(notice, catalogueOf(locale).texts)
    // `variablesOf` pairs the two; the compiler sees the pairs as two lists.
    const message = { type: notice.type, variables, channel, to, locale, ip, userId } as NewMessage<OwnerNotice['type']>
    try {
      await messages.send(trx, message)
    } catch (error) {
      // What it tells happens all the same.
      if (!(error instanceof UnreadableConnector)) throw error
      logger.error({ err: error, notice: notice.type }, 'an owner could not be told: the connector cannot be read')
    }
  }
