import type { Knex } from 'knex'
import { randomToken } from '../../../platform/ids.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { problem } from '../../base/errors/problems.ts'
import type { OperationContext } from '../../base/route.ts'
import { revoke } from '../../tokens/revocations/revocation-store.ts'
import { tokenDigest } from '../../tokens/token-digest.ts'
import { findUser } from '../users/user-store.ts'
import {
  type NewPersonalAccessToken,
  type PersonalAccessToken,
  personalAccessTokenPrefix,
  toPersonalAccessToken,
} from './personal-access-token.ts'
import {
  deletePersonalAccessToken,
  insertPersonalAccessToken,
  listPersonalAccessTokens,
  renamePersonalAccessToken,
} from './personal-access-token-store.ts'

/** Making, naming and deleting the personal access tokens of a user. Only digests are kept. */
export const personalAccessTokenOperations = ({
  database: { knex },
  mutate,
  now,
}: Pick<ManagementDependencies, 'database' | 'mutate' | 'now'>) => ({
  async list(userId: string): Promise<PersonalAccessToken[]> {
    await requireUser(knex, userId)
    return (await listPersonalAccessTokens(knex, userId)).map(toPersonalAccessToken)
  },

  create(
    context: OperationContext,
    userId: string,
    { name, scopes, expiresAt }: NewPersonalAccessToken,
  ): Promise<PersonalAccessToken & { value: string }> {
    if (expiresAt !== null && expiresAt <= now().getTime()) {
      throw problem('guard.invalid_input', { detail: 'expiresAt: must lie in the future' })
    }
    return mutate(context, async ({ trx }) => {
      await requireUser(trx, userId)
      const value = randomToken(personalAccessTokenPrefix)
      const row = await insertPersonalAccessToken(trx, {
        user_id: userId,
        name,
        scopes,
        digest: tokenDigest('personal-access-token', value),
        expires_at: expiresAt === null ? null : new Date(expiresAt),
      })
      return { ...toPersonalAccessToken(row), value }
    })
  },

  rename: (context: OperationContext, userId: string, currentName: string, name: string) =>
    mutate(context, async ({ trx }) => {
      const row = await renamePersonalAccessToken(trx, userId, currentName, name)
      if (row === undefined) throw problem('entity.not_found')
      return toPersonalAccessToken(row)
    }),

  /** From then on it cannot be exchanged, and what it was exchanged for counts no more. */
  delete: (context: OperationContext, userId: string, name: string): Promise<void> =>
    mutate(context, async ({ trx }) => {
      const issues = await deletePersonalAccessToken(trx, userId, name)
      if (issues === undefined) throw problem('entity.not_found')
      await revoke(
        trx,
        issues.map(({ token_id, expires_at }) => ({ kind: 'jti', value: token_id, expiresAt: expires_at })),
      )
    }),
})

const requireUser = async (knex: Knex, userId: string) => {
  if ((await findUser(knex, userId)) === undefined) throw problem('entity.not_found')
}
