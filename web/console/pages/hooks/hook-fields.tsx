import type { Field } from '../../components/field.ts'

export const hookFields: readonly Field[] = [
  { path: 'name', label: 'Name', empty: '' },
  {
    ...{ path: 'config.url', label: 'URL', isRequired: true, isCode: true, empty: '' },
    placeholder: 'https://crm.example.com/webhooks',
  },
  {
    ...{ path: 'events', label: 'Events', kind: 'list', isCode: true, placeholder: 'User.Created' },
    hint: 'Names of events, or a wildcard such as User.*',
  },
]

/** Of one that there is. */
export const deliveryFields: readonly Field[] = [
  { path: 'enabled', label: 'Deliver', kind: 'flag', hint: 'Off: events wait until you switch it on again.' },
  {
    ...{ path: 'config.rateLimit', label: 'At most so many a minute', kind: 'number', empty: undefined },
    hint: 'Empty: as many as it takes, four at a time.',
  },
  {
    ...{ path: 'config.headers', label: 'Headers of your own', kind: 'pairs' },
    hint: 'Sent with every event, such as an Authorization that a gateway of yours wants.',
  },
  {
    ...{ path: 'organizationIds', label: 'Only of these organizations', kind: 'list', isCode: true },
    hint: 'Ids. Empty: events of all organizations, and of none.',
  },
]
