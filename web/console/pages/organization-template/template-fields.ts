import type { Field } from '../../components/field.ts'

export const typeLabels = { User: 'People', MachineToMachine: 'Applications' } as const

const description: Field = { path: 'description', label: 'Description' }

export const roleFields: readonly Field[] = [
  { path: 'name', label: 'Name', isRequired: true, placeholder: 'Admin' },
  description,
  { path: 'type', label: 'For', kind: 'choice', options: typeLabels, isRequired: true, hint: 'It never changes.' },
]

export const roleSettings: readonly Field[] = [{ path: 'name', label: 'Name', isRequired: true }, description]

export const scopeFields: readonly Field[] = [
  {
    ...{ path: 'name', label: 'Name', isRequired: true, isCode: true, placeholder: 'invite:member' },
    hint: 'As it stands in tokens: a word without spaces.',
  },
  description,
]
