import { onlyValue } from '../../base/read-form.ts'
import type { Identity } from '../../directory/users/identity.ts'
import { accountClient } from '../../interaction/account-client.ts'
import { type AccountError, identitiesPage, type PlainMessage } from '../../pages/account/index.ts'
import type { AccountPage } from './account-page.ts'
import { errorOf } from './errors.ts'

const path = '/account/identities'

/** What the callback says of an attempt that came to nothing. */
const outcomes: Readonly<Record<string, PlainMessage>> = {
  identity_in_use: 'accountIdentityTaken',
  denied: 'accountIdentityDenied',
  failed: 'accountIdentityFailed',
  unavailable: 'accountIdentityFailed',
}

/** Who the person is at other providers. */
export const identities: AccountPage<{ error: AccountError }> = {
  path,
  title: 'accountIdentities',
  group: 'signIn',
  isShown: ({ settings, experience }) =>
    settings.social !== 'Off' && experience.socialSignInConnectorTargets.length > 0,
  needsConfirmation: true,

  async show({ operations, federation, person, settings, parameters, shell }, entered) {
    const { identities: linked = {} } = await operations.profile.get(person)
    const offered = await federation.offered(accountClient(path))
    const names = new Map(offered.map(({ target, name }) => [target, name]))
    const message = outcomes[parameters.get('outcome') ?? '']
    return identitiesPage(shell, {
      linked: Object.entries(linked as Record<string, Identity>).map(([target, { userId, details }]) => ({
        target,
        name: names.get(target) ?? target,
        who: whoIs(details) ?? userId,
      })),
      offered: offered.filter(({ kind, target }) => kind === 'social' && !Object.hasOwn(linked, target)),
      verified: parameters.get('outcome') === 'verified' ? (parameters.get('verificationId') ?? undefined) : undefined,
      isEditable: settings.social === 'Edit',
      error: entered?.error ?? (message && { message }),
    })
  },

  choices: {
    async begin({ federation, person, settings, form, shell, again, goTo, leave }) {
      if (settings.social !== 'Edit') return goTo(path)
      if (shell.confirmPath !== undefined) return goTo(shell.confirmPath)
      const connectorId = onlyValue(form, 'connector') ?? ''
      const sent = await federation.begin(person, { connectorId, returnTo: path })
      if (sent.outcome === 'begun') return leave(sent.url)
      if (sent.outcome === 'too_many_requests') return again({ error: { message: 'tooManyRequestsForNow' } }, 429)
      await again({ error: { message: 'accountIdentityFailed' } })
    },
    async link({ operations, form, context, again, done }) {
      const verificationId = onlyValue(form, 'verificationId') ?? ''
      const linking = operations.identities.link(context('linkMyIdentity'), { verificationId, replaces: false })
      const error = await errorOf(linking, {
        'user.identity_already_in_use': ['accountIdentityTaken'],
        'verification_record.not_found': ['accountIdentityFailed'],
      })
      if (error) return again({ error })
      done('accountIdentityLinked')
    },
    async remove({ operations, form, context, again, done }) {
      const removing = operations.identities.unlink(context('unlinkMyIdentity'), onlyValue(form, 'target') ?? '')
      const error = await errorOf(removing, { 'user.identity_not_exist': ['accountRefused'] })
      if (error) return again({ error })
      done('accountRemoved')
    },
  },
}

/** As the provider calls the person. */
const whoIs = (details: Identity['details']): string | undefined =>
  [details?.['email'], details?.['name']].find((value): value is string => typeof value === 'string' && value !== '')
