import type { Calls } from '../../generated/api.ts'

type Row = Calls['getLog']['answer']

interface Payload {
  result?: string
  applicationId?: string
  userId?: string
  subject?: string
  person?: { userId: string; sid?: string }
  sessionId?: string
  ip?: string
  userAgent?: string
  method?: string
  path?: string
  fields?: readonly string[]
  events?: readonly { type: string; entity: { kind: string; id: string } }[]
  error?: unknown
}

/** A row of the audit trail in words. */
export const entryOf = ({ key, payload }: Row) => {
  const about = payload as Payload
  const [area, ...rest] = key.split('.')
  return {
    ...about,
    what: area === 'Management' || area === 'Account' ? inWords(rest.join(' ')) : inWords(key.replaceAll('.', ' ')),
    isRefused: about.result === 'Error',
    by: about.person?.userId ?? about.subject ?? about.userId ?? about.applicationId ?? 'the issuer',
    /** Whom it is about, where that is somebody else. */
    about: about.userId === about.person?.userId ? undefined : about.userId,
    fields: about.fields ?? [],
    events: about.events ?? [],
  }
}

/** `updateUserProfile` → `Update user profile`. */
const inWords = (name: string): string => {
  const words = name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Kinds of things that have a page. */
const pages: Readonly<Record<string, string>> = {
  user: '/users',
  role: '/roles',
  organization: '/organizations',
  'organization-role': '/organization-template/roles',
  'organization-scope': '/organization-template/permissions',
}

export const pathOfEntity = ({ kind, id }: { kind: string; id: string }): string | undefined =>
  pages[kind] && `${pages[kind]}/${id}`
