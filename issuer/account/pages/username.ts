import { onlyValue } from '../../base/read-form.ts'
import { type AccountError, usernamePage } from '../../pages/account/index.ts'
import type { AccountPage } from './account-page.ts'
import { errorOf } from './errors.ts'

export const username: AccountPage<{ entered: string; error: AccountError }> = {
  path: '/account/username',
  title: 'username',
  group: 'you',
  isShown: ({ settings }) => settings.username !== 'Off',
  needsConfirmation: true,

  async show({ operations, person, settings, shell }, entered) {
    const { username: current } = await operations.profile.get(person)
    return usernamePage(shell, { username: current ?? undefined, isEditable: settings.username === 'Edit', ...entered })
  },

  choices: {
    async save({ operations, form, context, again, done }) {
      const entered = (onlyValue(form, 'username') ?? '').trim()
      if (entered === '') return again({ entered, error: { message: 'usernameMissing', field: 'username' } })
      const saving = operations.profile.update(context('updateMyAccount'), { username: entered })
      const error = await errorOf(saving, { 'guard.invalid_input': ['usernameInvalid', 'username'] })
      if (error) return again({ entered, error })
      done('accountSaved')
    },
  },

  fact: async ({ operations, person }) => {
    const { username: current } = await operations.profile.get(person)
    return current ? { text: current } : { say: 'accountNone' }
  },
}
