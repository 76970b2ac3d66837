import { OAuthError } from '../../../base/errors/problems.ts'
import type { EndReason } from '../../../tokens/sessions/session.ts'

/** Why a code or refresh token is refused: the stable `reason` of the answer, and a sentence for who reads it. */
export const refusals = {
  refresh_token_unknown: 'The refresh token is not known.',
  refresh_token_expired: 'The refresh token has expired.',
  refresh_token_reused: 'The refresh token was used again after another took its place.',
  refresh_token_bound: 'The refresh token is bound to a key that the request does not prove.',
  session_ended: 'The sign-in that this belongs to has ended.',
  user_suspended: 'The user is suspended or no longer exists.',
  consent_revoked: 'The user no longer allows this application access.',
} as const

export type RefusalReason = keyof typeof refusals

/** 400 `invalid_grant`. */
export const refused = (reason: RefusalReason): OAuthError =>
  new OAuthError('invalid_grant', refusals[reason], { reason })

const reasons: Partial<Record<EndReason, RefusalReason>> = {
  user_suspended: 'user_suspended',
  user_deleted: 'user_suspended',
  consent_revoked: 'consent_revoked',
  refresh_token_reused: 'refresh_token_reused',
}

/** What is told of an authorization that ended: the end that struck. */
export const refusedAfter = (reason: EndReason): OAuthError => refused(reasons[reason] ?? 'session_ended')
