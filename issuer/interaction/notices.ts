import type { Query } from '../../platform/database/database.ts'
import type { NoticedOwner, NotifyOwner, OwnerNotice } from '../base/owner-notices.ts'
import type { LocaleOf } from '../pages/index.ts'
import type { Interaction } from './interaction-store.ts'
import type { Visitor } from './visitor.ts'

export interface Notices {
  /** As `NotifyOwner`, in the language of whoever stands before the issuer. */
  notify(
    trx: Query,
    about: Pick<Interaction, 'request'>,
    visitor: Visitor,
    owner: NoticedOwner,
    notice: OwnerNotice,
  ): Promise<void>
}

export const createNotices = ({
  notifyOwner,
  localeOf,
}: {
  notifyOwner: NotifyOwner
  localeOf: LocaleOf
}): Notices => ({
  notify(trx, { request: { uiLocales } }, { acceptLanguage, origin }, owner, notice) {
    return notifyOwner(trx, owner, notice, { locale: localeOf({ uiLocales, acceptLanguage }), ip: origin.ip })
  },
})
