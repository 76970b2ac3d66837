import type { Field } from '../../components/field.ts'

const syncProfile: Field = {
  ...{ path: 'syncProfile', label: 'Name and picture are taken over at each sign-in', kind: 'flag' },
}
const logo = (path: string): Field => ({
  path,
  label: 'Logo',
  isCode: true,
  empty: undefined,
  placeholder: 'https://…',
})

export const socialFields = (isGeneric: boolean, isNew: boolean): Field[] => [
  ...(isGeneric && isNew
    ? [
        {
          ...{ path: 'metadata.target', label: 'Name in identities', isRequired: true, isCode: true },
          ...{ hint: 'Of this provider alone: letters, digits, - and _. It never changes.', placeholder: 'acme' },
        } satisfies Field,
      ]
    : []),
  { path: 'metadata.name', label: 'Name on the button', empty: undefined },
  logo('metadata.logo'),
  syncProfile,
]

export const companyFields: readonly Field[] = [
  { path: 'connectorName', label: 'Name', isRequired: true, hint: 'Of the company.' },
  {
    ...{ path: 'domains', label: 'Domains', kind: 'list', isCode: true, placeholder: 'acme.example' },
    hint: 'Addresses with one of them lead to this provider.',
  },
  { path: 'branding.displayName', label: 'Name on the button', empty: undefined },
  logo('branding.logo'),
  syncProfile,
]
