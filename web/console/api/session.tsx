import { createContext, useContext } from 'react'
import { isAllowed, type Need, neededScopes } from './operations.ts'

/** Who uses the console in this browser. */
export interface Session {
  user: {
    id: string
    name: string | null
    username: string | null
    primaryEmail: string | null
    avatar: string | null
  }
  roles: readonly string[]
  scopes: readonly string[]
  /** Seconds since the epoch. */
  authTime: number
  expiresAt: number
  baseUrl: string
  version: string
}

export const SessionContext = createContext<Session | undefined>(undefined)

export const useSession = (): Session => {
  const session = useContext(SessionContext)
  if (!session) throw new Error('There is no session here.')
  return session
}

/** Why this person may not do it; undefined when they may. */
export const useRefusal = (need: Need | undefined): string | undefined => {
  const { scopes, roles } = useSession()
  if (need === undefined || isAllowed(need, scopes)) return undefined
  const needed = neededScopes(need).join(' or ')
  return `This needs the permission ${needed}. You are ${roles.join(', ') || 'without a role'}.`
}

export const nameOfPerson = ({ name, username, primaryEmail, id }: Session['user']): string =>
  name || username || primaryEmail || id
