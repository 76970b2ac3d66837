import type { Knex } from 'knex'
import { randomAlphanumerics } from '../../../platform/ids.ts'
import { sha256 } from '../../../platform/secret.ts'
import { refuseEscalation } from '../../base/authorization.ts'
import { changesOf } from '../../base/change.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { requireFound } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import { managementScopesOfApplications } from '../../base/management-scope-store.ts'
import type { Caller, OperationContext } from '../../base/route.ts'
import { endClientAccess } from '../../tokens/authorizations/end-access.ts'
import { confidentialTypes } from './application.ts'
import { findApplication, lockApplication } from './application-store.ts'
import { refuseConsole } from './refuse-console.ts'
import { type ApplicationSecret, type NewSecret, type SecretPatch, secretLength, toSecret } from './secret.ts'
import { deleteSecret, insertSecret, listSecrets, lockSecret, updateSecret } from './secret-store.ts'

/**
 * Makes a secret of at least 256 random bits and keeps its SHA-256; the answer is the only place where its value ever
 * stands.
 */
export const storeSecret = async (
  trx: Knex,
  applicationId: string,
  { name, expiresAt }: NewSecret,
): Promise<ApplicationSecret & { value: string }> => {
  const value = randomAlphanumerics(secretLength)
  const row = await insertSecret(trx, {
    application_id: applicationId,
    name,
    digest: sha256(value),
    expires_at: expiresAt === null ? null : new Date(expiresAt),
  })
  return { ...toSecret(row), value }
}

/** The named secrets of an application: several at once, so that one can follow another without a pause. */
export const secretOperations = ({
  database: { knex },
  mutate,
  indicators,
  now,
}: Pick<ManagementDependencies, 'database' | 'mutate' | 'indicators' | 'now'>) => {
  const lockFor = async (trx: Knex, caller: Caller, applicationId: string) => {
    const row = requireFound(await lockApplication(trx, applicationId), applicationId)
    await refuseEscalation(caller, () => managementScopesOfApplications(trx, indicators, [applicationId]))
    refuseConsole(applicationId)
    return row
  }

  const refusePast = (expiresAt: number | null | undefined) => {
    if (expiresAt == null || expiresAt > now().getTime()) return
    throw problem('guard.invalid_input', { detail: 'expiresAt: must lie in the future' })
  }

  return {
    async list(applicationId: string): Promise<ApplicationSecret[]> {
      requireFound(await findApplication(knex, applicationId), applicationId)
      return (await listSecrets(knex, applicationId)).map(toSecret)
    },

    async create(context: OperationContext, applicationId: string, input: NewSecret) {
      refusePast(input.expiresAt)
      return mutate(context, async ({ trx }) => {
        const { type } = await lockFor(trx, context.caller, applicationId)
        if (!confidentialTypes.has(type)) {
          throw problem('entity.db_constraint_violated', { detail: `A ${type} application cannot keep a secret.` })
        }
        return storeSecret(trx, applicationId, input)
      })
    },

    async update(context: OperationContext, applicationId: string, secretName: string, patch: SecretPatch) {
      refusePast(patch.expiresAt)
      return mutate(context, async ({ trx }) => {
        await lockFor(trx, context.caller, applicationId)
        const row = await lockSecret(trx, applicationId, secretName)
        if (row === undefined) throw problem('entity.not_found')
        const { name, expiresAt } = patch
        const columns = { name, expires_at: expiresAt == null ? expiresAt : new Date(expiresAt) } as Partial<typeof row>
        const changes = changesOf(row, columns)
        return toSecret(changes ? await updateSecret(trx, row, changes) : row)
      })
    },

    /**
     * Whoever knew the secret has nothing left: the application's tokens end with it, unless it had expired by itself.
     */
    delete: (context: OperationContext, applicationId: string, secretName: string): Promise<void> =>
      mutate(context, async ({ trx }) => {
        await lockFor(trx, context.caller, applicationId)
        const row = await lockSecret(trx, applicationId, secretName)
        if (row === undefined) throw problem('entity.not_found')
        await deleteSecret(trx, applicationId, secretName)
        if (row.expires_at === null || row.expires_at > now()) await endClientAccess({ trx }, applicationId)
      }),
  }
}
