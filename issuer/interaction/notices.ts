import type { Query } from '../../platform/database/database.ts'
import type { UserRow } from '../directory/users/user.ts'
import type { Messages, MessageType, MessageVariables, NewMessage } from '../messages/messages.ts'
import { pickLocale } from '../pages/index.ts'
import type { Interaction } from './interaction-store.ts'
import type { Visitor } from './visitor.ts'

type NoticeType = Extract<
  MessageType,
  'PasswordChanged' | 'FactorAdded' | 'NewDevice' | 'BackupCodeUsed' | 'AddressChanged'
>

/** What an owner must know, whoever did it. */
export type Notice = {
  [Type in NoticeType]: { type: Type; variables: MessageVariables<Type> }
}[NoticeType]

export interface Notices {
  /**
   * In the transaction of what it tells. To the address that is known to be the person's: mail before telephone; to
   * nobody where there is neither, or nothing that sends.
   */
  notify(
    trx: Query,
    about: Pick<Interaction, 'request'>,
    visitor: Visitor,
    owner: Pick<UserRow, 'id' | 'primary_email' | 'primary_phone'>,
    notice: Notice,
  ): Promise<void>
}

export const createNotices = (messages: Pick<Messages, 'send'>): Notices => ({
  async notify(trx, { request: { uiLocales } }, { acceptLanguage, origin }, owner, { type, variables }) {
    const { primary_email: email, primary_phone: phone } = owner
    const to = email ?? phone
    if (to === null) return
    const where = { channel: email === null ? 'sms' : 'email', to } as const
    const how = { locale: pickLocale({ uiLocales, acceptLanguage }), ip: origin.ip, userId: owner.id }
    // `Notice` pairs the two; the compiler sees the pairs as two lists.
    await messages.send(trx, { ...where, ...how, type, variables } as NewMessage<NoticeType>)
  },
})
