import type { Field } from '../../components/field.ts'

export const profileFields: readonly Field[] = [
  { path: 'name', label: 'Name', autoComplete: 'off' },
  { path: 'username', label: 'User name', isCode: true, autoComplete: 'off' },
  { path: 'primaryEmail', label: 'E-mail address', autoComplete: 'off' },
  {
    path: 'primaryPhone',
    label: 'Telephone',
    hint: 'With the code of the country: 4915112345678.',
    autoComplete: 'off',
  },
]
