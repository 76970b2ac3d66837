import { onlyValue } from '../../base/read-form.ts'
import { type AccountError, dataPage, deletedPage } from '../../pages/account/index.ts'
import type { AccountPage } from './account-page.ts'
import { errorOf } from './errors.ts'

/** What is stored, to take along; and the end of the account. */
export const data: AccountPage<{ isUnsure?: boolean; error?: AccountError }> = {
  path: '/account/data',
  title: 'accountData',
  group: 'data',
  isShown: ({ settings }) => settings.export === 'Edit' || settings.deletion === 'Edit',
  needsConfirmation: true,

  show: async ({ settings, shell }, entered) =>
    dataPage(shell, {
      mayDownload: settings.export === 'Edit',
      mayDelete: settings.deletion === 'Edit',
      ...entered,
    }),

  choices: {
    async download({ operations, context, download }) {
      download('account.json', await operations.data.export(context('exportMyAccount')))
    },
    async delete({ operations, form, context, again, send, shell, clearSession }) {
      if (onlyValue(form, 'sure') !== 'yes') return again({ isUnsure: true })
      const error = await errorOf(operations.data.delete(context('deleteMyAccount')))
      if (error) return again({ error })
      await send(deletedPage(shell), { setCookies: [clearSession] })
    },
  },
}
