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
  /** Of a change of its rules: where, and of each file the SHA-256 before and after; `null`: there is none. */
  gateway?: string
  files?: readonly { file: string; before: string | null; after: string | null }[]
}

/** A row of the audit trail in words. */
export const entryOf = ({ key, payload }: Row) => {
  const about = payload as Payload
  const [area, ...rest] = key.split('.')
  return {
    ...about,
    what: area === 'Management' || area === 'Account' ? inWords(rest.join(' ')) : inWords(key.replaceAll('.', ' ')),
    isRefused: about.result === 'Error',
    because: reasonOf(about.error),
    /** What was called; most are operations of the Management API. */
    call: about.path && `${about.method} ${about.path.startsWith('/console/') ? '' : '/api'}${about.path}`,
    by: about.person?.userId ?? about.subject ?? about.userId ?? about.applicationId ?? 'the issuer',
    /** Whom it is about, where that is somebody else. */
    about: about.userId === about.person?.userId ? undefined : about.userId,
    fields: about.fields ?? [],
    events: about.events ?? [],
    files: about.files ?? [],
  }
}

/** Why it was refused, or did not come about. */
const reasonOf = (error: unknown): string | undefined => {
  if (typeof error === 'string') return error
  const { code, message } = Object(error) as { code?: string; message?: string }
  const told = message && code ? `${message} (${code})` : (message ?? code)
  if (code !== 'console.gateway_unavailable') return told
  return `${told} It may have been done all the same.`
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
