import type { Field } from '../../components/field.ts'
import { type Application, keepsSecrets, signsPeopleIn } from './application-types.ts'

export const redirectUris: Field = {
  ...{ path: 'oidcClientMetadata.redirectUris', label: 'Redirect URIs', kind: 'list', isCode: true },
  ...{ empty: undefined, placeholder: 'https://app.example.com/callback' },
  hint: 'Where browsers come back to with a code, letter by letter; http only on this machine.',
}

const setting = (path: string, rest: Omit<Field, 'path'>): Field => ({ path, empty: undefined, ...rest })

/** What can be changed of an application; the rows depend on its kind. */
export const settingsOf = (application: Application): Readonly<Record<string, readonly Field[]>> => ({
  'What it is': [
    { path: 'name', label: 'Name', isRequired: true },
    { path: 'description', label: 'Description', kind: 'lines' },
  ],
  ...(signsPeopleIn(application) && { 'Where it is': addresses, Tokens: tokens }),
  ...(keepsSecrets(application) && { Safety: safety }),
})

const addresses: readonly Field[] = [
  redirectUris,
  setting('oidcClientMetadata.postLogoutRedirectUris', {
    ...{ label: 'After signing out', kind: 'list', isCode: true, placeholder: 'https://app.example.com/' },
  }),
  setting('customClientMetadata.corsAllowedOrigins', {
    ...{ label: 'Origins of its pages', kind: 'list', isCode: true, placeholder: 'https://app.example.com' },
    hint: 'Pages there may call the token endpoint; those of redirect URIs may anyway.',
  }),
  setting('oidcClientMetadata.backchannelLogoutUri', {
    ...{ label: 'Back-channel logout', isCode: true, placeholder: 'https://app.example.com/logout-token' },
    hint: 'Hears it when a session of a person ends.',
  }),
]

const tokens: readonly Field[] = [
  setting('customClientMetadata.alwaysIssueRefreshToken', {
    ...{ label: 'Refresh tokens without offline_access', kind: 'flag' },
  }),
  setting('customClientMetadata.rotateRefreshToken', {
    ...{ label: 'Each refresh token once', kind: 'flag', hint: 'One that is used again ends the authorization.' },
  }),
  setting('customClientMetadata.refreshTokenTtlInDays', {
    ...{ label: 'Days of a refresh token', kind: 'number', hint: '1 to 180.' },
  }),
  setting('customClientMetadata.idTokenTtl', { label: 'Seconds of an ID token', kind: 'number' }),
  setting('customClientMetadata.allowTokenExchange', {
    ...{ label: 'Token exchange', kind: 'flag', hint: 'It may redeem subject tokens: act for people.' },
  }),
]

const safety: readonly Field[] = [
  setting('customClientMetadata.requirePar', { label: 'Only requests that were sent ahead (PAR)', kind: 'flag' }),
  setting('customClientMetadata.dpopBoundAccessTokens', {
    ...{ label: 'Access tokens bound to a key (DPoP)', kind: 'flag' },
  }),
  setting('customClientMetadata.securityProfile', {
    ...{ label: 'Security profile', kind: 'choice', options: { '': 'None', fapi2: 'FAPI 2.0' } },
  }),
]
