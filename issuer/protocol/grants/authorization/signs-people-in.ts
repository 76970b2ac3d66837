import type { Client } from '../../clients/client.ts'

const types: ReadonlySet<Client['type']> = new Set(['Native', 'SPA', 'Traditional', 'Protected'])

/** Whether people sign in to clients of this type. */
export const signsPeopleIn = ({ type }: Pick<Client, 'type'>): boolean => types.has(type)
