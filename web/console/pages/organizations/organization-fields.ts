import type { Field } from '../../components/field.ts'

export const naming: readonly Field[] = [
  { path: 'name', label: 'Name', isRequired: true },
  { path: 'description', label: 'Description', kind: 'lines' },
]

const image = (path: string, label: string): Field => ({
  ...{ path: `branding.${path}`, label, isCode: true, empty: undefined, placeholder: 'https://example.com/logo.svg' },
})

/** What can be changed of an organization. */
export const settings: Readonly<Record<string, readonly Field[]>> = {
  'What it is': naming,
  'Signing in': [
    {
      ...{ path: 'isMfaRequired', label: 'Members need a second factor', kind: 'flag' },
      hint: 'Tokens for it are refused to members who have none.',
    },
  ],
  'On sign-in pages': [
    {
      ...{ path: 'color.primaryColor', label: 'Colour', isCode: true, empty: undefined, placeholder: '#3b4fd6' },
      hint: 'For people who come with its id in the request.',
    },
    image('logoUrl', 'Logo'),
    image('darkLogoUrl', 'Logo on dark ground'),
  ],
}
