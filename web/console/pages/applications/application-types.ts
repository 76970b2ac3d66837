import type { Calls } from '../../generated/api.ts'

export type Application = Calls['getApplication']['answer']
type Type = Application['type']

/** Kinds of applications in the words of those who write them. */
export const applicationTypes: Readonly<Partial<Record<Type, { label: string; summary: string }>>> = {
  Traditional: { label: 'Web application', summary: 'Pages made on a server, which keeps a secret' },
  SPA: { label: 'Single-page application', summary: 'Runs in browsers and keeps no secret' },
  Native: { label: 'Native application', summary: 'On telephones, desktops, the command line, or a device' },
  MachineToMachine: { label: 'Machine to machine', summary: 'A backend by itself, without any person' },
}

export const typeLabels = Object.fromEntries(Object.entries(applicationTypes).map(([type, { label }]) => [type, label]))

export const labelOf = (type: Type): string => applicationTypes[type]?.label ?? type

export const signsPeopleIn = ({ type }: Pick<Application, 'type'>): boolean => type !== 'MachineToMachine'
export const keepsSecrets = ({ type }: Pick<Application, 'type'>): boolean => type !== 'SPA' && type !== 'Native'
