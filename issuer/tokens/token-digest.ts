import { sha256 } from '../../platform/secret.ts'

/** What a stored token is; part of what is hashed, so that a token of one kind never finds a row of another. */
export type StoredTokenKind =
  | 'subject-token'
  | 'opaque-token'
  | 'personal-access-token'
  | 'authorization-code'
  | 'device-code'
  | 'refresh-token'
  | 'session'
  | 'browser'
  | 'device'
  | 'pushed-request'
  | 'one-time-token'
  | 'console-session'
  | 'console-invitation'

/** The key of a token's row: the database never holds the token. */
export const tokenDigest = (kind: StoredTokenKind, token: string): Buffer => sha256(`${kind}:${token}`)
