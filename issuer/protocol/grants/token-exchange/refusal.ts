import { OAuthError } from '../../../base/errors/problems.ts'

/** Why an exchange is refused: the stable `reason` of the answer, and a sentence for the person who reads it. */
export const refusals = {
  subject_token_unknown: 'The subject token is not known.',
  subject_token_expired: 'The subject token has expired.',
  subject_token_consumed: 'The subject token has been used already.',
  subject_token_type: 'The subject token is not of a kind that can be exchanged.',
  subject_token_bound: 'The subject token is bound to another client, resource, actor or key.',
  subject_suspended: 'The subject is suspended or no longer exists.',
  actor_token_invalid: 'The actor token is not a valid access token of a user.',
  actor_token_bound: 'The actor token is bound to a key that the request does not prove.',
  actor_token_scope: 'The actor token was not issued with the openid scope.',
  actor_suspended: 'The actor is suspended.',
  act_chain_too_deep: 'Too many actors stand behind the actor token.',
} as const

export type RefusalReason = keyof typeof refusals

/** 400 `invalid_grant`. A refused request leaves the subject token as it was. */
export const refused = (reason: RefusalReason): OAuthError =>
  new OAuthError('invalid_grant', refusals[reason], { reason })
