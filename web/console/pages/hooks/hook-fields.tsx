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
    ...{ path: 'config.retries', label: 'Attempts after the first', kind: 'number', empty: undefined },
    hint: 'Empty: as the relay is set.',
  },
  { path: 'config.rateLimit', label: 'At most so many a second', kind: 'number', empty: undefined },
]
