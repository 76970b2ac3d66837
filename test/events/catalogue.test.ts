import { expect, test } from 'vitest'
import { catalogue } from '../../events/catalogue.ts'
import { eventTypeOf } from '../../events/event-patterns.ts'

test('the catalogue holds the events of the interface, those of impersonation and those that clients may name, each once', () => {
  const types = catalogue.map(({ type }) => type)
  expect(types.toSorted()).toEqual(
    [
      'Consent.Granted',
      'Consent.Revoked',
      'Grant.LimitExceeded',
      'Identifier.Lockout',
      ...['Approved', 'Ended', 'Refused', 'Requested', 'Started'].map((what) => `Impersonation.${what}`),
      'Message.RateLimited',
      ...['Created', 'Deleted', 'Data.Updated', 'Membership.Updated'].map((what) => `Organization.${what}`),
      ...['Created', 'Deleted', 'Data.Updated', 'Scopes.Updated'].map((what) => `OrganizationRole.${what}`),
      ...['Created', 'Deleted', 'Data.Updated'].map((what) => `OrganizationScope.${what}`),
      'PostRegister',
      'PostResetPassword',
      'PostSignIn',
      'PostSignInAdaptiveMfaTriggered',
      'RefreshToken.Reused',
      'Session.Ended',
      ...['Created', 'Deleted', 'Data.Updated', 'Scopes.Updated'].map((what) => `Role.${what}`),
      ...['Created', 'Deleted', 'Data.Updated'].map((what) => `Scope.${what}`),
      ...['Created', 'Deleted', 'Data.Updated', 'SuspensionStatus.Updated'].map((what) => `User.${what}`),
    ].toSorted(),
  )
})

test('names are exact, but for one older spelling', () => {
  expect(eventTypeOf('Role.Scopes.Update')).toBe('Role.Scopes.Updated')
  expect(eventTypeOf('User.Created')).toBe('User.Created')
  for (const name of ['user.created', 'User.*', 'User', '', 'constructor']) expect(eventTypeOf(name)).toBeUndefined()
})
