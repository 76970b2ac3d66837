import { onlyValue } from '../../base/read-form.ts'
import { deviceLabel } from '../../interaction/device-label.ts'
import { sessionsPage } from '../../pages/account/index.ts'
import type { AccountPage } from './account-page.ts'
import { unless } from './unless.ts'

/** Where the person is signed in. */
export const sessions: AccountPage = {
  path: '/account/sessions',
  title: 'accountSessions',
  group: 'access',
  isShown: ({ settings }) => settings.session !== 'Off',
  needsConfirmation: true,

  async show({ operations, person, shell }) {
    const rows = await operations.sessions.list(person)
    const names = new Map(
      (await operations.applications.list(person)).map(({ clientId, name }) => [clientId, name] as const),
    )
    const shown = rows.map((row) => ({
      id: row.id,
      device: deviceLabel(row.userAgent ?? undefined),
      isCurrent: row.id === person.sessionId,
      address: row.lastAddress,
      lastSeenAt: row.lastSeenAt,
      authenticatedAt: row.authenticatedAt,
      applications: Object.keys(row.authorizations).flatMap((clientId) => names.get(clientId) ?? []),
    }))
    const current = shown.filter(({ isCurrent }) => isCurrent)
    return sessionsPage(shell, { sessions: [...current, ...shown.filter(({ isCurrent }) => !isCurrent)] })
  },

  choices: {
    async end({ operations, form, context, done }) {
      const ended = operations.sessions.end(context('endMySession'), onlyValue(form, 'id') ?? '')
      // It ended by itself meanwhile: it is as the person wants it.
      await unless(ended, 'oidc.session_not_found')
      done('accountSessionEnded')
    },
    async end_others({ operations, context, done }) {
      await operations.sessions.endOthers(context('endMySessions'))
      done('accountSessionsEnded')
    },
  },
}
