import { onlyValue } from '../../base/read-form.ts'
import { isMfaMandatory } from '../../directory/sign-in-experience/sign-in-experience.ts'
import { shortestPassword } from '../../directory/users/password-policy/policy.ts'
import { password as passwordText } from '../../directory/users/user.ts'
import { type AccountError, passwordPage } from '../../pages/account/index.ts'
import type { AccountPage } from './account-page.ts'
import { errorOf } from './errors.ts'

export const password: AccountPage<{ error: AccountError }> = {
  path: '/account/password',
  title: 'password',
  group: 'signIn',
  isShown: ({ settings }) => settings.password !== 'Off',
  needsConfirmation: true,

  async show({ operations, person, settings, experience, shell }, entered) {
    const { hasPassword = false } = await operations.profile.get(person)
    const { passwordPolicy, mfa } = experience
    return passwordPage(shell, {
      hasPassword,
      length: shortestPassword(passwordPolicy, { isMfaMandatory: isMfaMandatory(mfa) }),
      identifier: shell.account.identifier,
      isEditable: settings.password === 'Edit',
      ...entered,
    })
  },

  choices: {
    async save({ operations, form, context, again, done }) {
      const typed = onlyValue(form, 'password') ?? ''
      const refuse = (message: AccountError['message']) => again({ error: { message, field: 'password' } })
      if (typed === '') return refuse('choosePassword')
      if (!passwordText.safeParse(typed).success) return refuse('tooLong')
      const error = await errorOf(operations.password.set(context('setMyPassword'), typed))
      if (error) return again({ error })
      done('accountPasswordSaved')
    },
  },
}
