import { queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import type { InteractionEventName, InteractionState, Staged } from './interaction-state.ts'
import { type Interaction, isOpen } from './interaction-store.ts'

/** What changes about an interaction while it waits for its person. */

/** An SQL condition. */
const isOfNobodyElsewhere = `kind = 'federated' AND user_id IS NULL AND purpose IN ('sign_in', 'register')
     AND verified_at IS NOT NULL AND consumed_at IS NULL AND expires_at > now()`

const begin = statement(
  'interaction-begin-event',
  `WITH begun AS (
     UPDATE interactions SET event = $2, user_id = NULL, staged = '{}',
       state = CASE WHEN $3 THEN state - 'skipsMfa' - 'skipsPasskey' - 'terms' - 'consent' - 'captcha' ELSE state END
         - 'notice' - 'identified' - 'federation'
     WHERE id = $1 AND ${isOpen} RETURNING id),
   carried AS (
     UPDATE proofs SET purpose = CASE $2 WHEN 'Register' THEN 'register' ELSE 'sign_in' END
     WHERE interaction_id = (SELECT id FROM begun) AND ${isOfNobodyElsewhere} AND NOT $3 AND $2 <> 'ForgotPassword'
     RETURNING id)
   UPDATE proofs SET consumed_at = now()
   WHERE interaction_id = (SELECT id FROM begun) AND consumed_at IS NULL AND id NOT IN (SELECT id FROM carried)`,
)

/**
 * From now on the interaction is for this. Nothing that was proven or said for something else counts any more, but for
 * an identity that is nobody's here, which as well begins an account; with `isAnew` neither does what was decided.
 */
export const beginEvent = async (
  transaction: Transaction,
  { id, event, isAnew }: { id: string; event: InteractionEventName; isAnew: boolean },
): Promise<void> => {
  await queryOf(transaction)(begin, [id, event, isAnew])
}

const stage = statement(
  'interaction-stage',
  `UPDATE interactions SET staged = staged || $2::jsonb
   WHERE id = $1 AND event = $3 AND user_id IS NOT DISTINCT FROM $4 AND ${isOpen} RETURNING id`,
)

/**
 * Keeps what the person is to become, beside what is kept already. False when the interaction is over, or is for
 * something or somebody else by now.
 */
export const keepStaged = async (
  transaction: Transaction,
  { id, event, person }: Pick<Interaction, 'id' | 'event' | 'person'>,
  added: Staged,
): Promise<boolean> =>
  (await queryOf(transaction)(stage, [id, JSON.stringify(added), event, person?.id ?? null])).length > 0

const release = statement(
  'interaction-release',
  `WITH kept AS (
     UPDATE interactions SET staged = staged - $2::text[], state = state || $3::jsonb
     WHERE id = $1 AND ${isOpen} RETURNING id)
   UPDATE proofs SET consumed_at = now()
   WHERE interaction_id = (SELECT id FROM kept) AND consumed_at IS NULL AND purpose IN ('register', 'bind')
     AND (data->'identifier'->>'type' = ANY ($2::text[]) OR kind = ANY ($2::text[]))`,
)

/**
 * Forgets what the person was to get, because somebody else has it: it is asked for again. `fields` are kinds of
 * identifiers and of factors.
 */
export const releaseStaged = async (
  transaction: Transaction,
  id: string,
  fields: readonly string[],
  decision: InteractionState,
): Promise<void> => {
  await queryOf(transaction)(release, [id, fields, JSON.stringify(decision)])
}

const decide = statement(
  'interaction-decide',
  `UPDATE interactions SET state = state || $2::jsonb WHERE id = $1 AND ${isOpen}`,
)

/** Keeps what the person decided, beside what is kept already. */
export const keepDecision = async (trx: Transaction, id: string, decision: InteractionState): Promise<void> => {
  await queryOf(trx)(decide, [id, JSON.stringify(decision)])
}

const voidAll = statement(
  'interaction-void-proofs',
  'UPDATE proofs SET consumed_at = now() WHERE interaction_id = $1 AND consumed_at IS NULL',
)

/** What was proven counts no more. */
export const voidProofs = async (trx: Transaction, id: string): Promise<void> => {
  await queryOf(trx)(voidAll, [id])
}

/** Whose turn it is to have a proof verified, for `turnSeconds` at most. */
export const turnSeconds = 5
export const takesTurn = `UPDATE interactions
     SET state = state || jsonb_build_object('busyUntil', extract(epoch FROM now()) + ${turnSeconds})
     WHERE id = $1 AND ${isOpen} AND coalesce((state->>'busyUntil')::float8, 0) < extract(epoch FROM now())
     RETURNING id`

const leave = statement(
  'interaction-leave-turn',
  `UPDATE interactions SET state = state - 'busyUntil' WHERE id = $1 AND ${isOpen}`,
)

export const leaveTurn = async (transaction: Transaction, id: string): Promise<void> => {
  await queryOf(transaction)(leave, [id])
}
