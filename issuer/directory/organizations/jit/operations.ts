import type { Knex } from 'knex'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { notFound, requireAll, requireFound, unknownRelated } from '../../../base/errors/not-found.ts'
import { problem } from '../../../base/errors/problems.ts'
import type { Page } from '../../../base/lists/list-store.ts'
import type { OperationContext } from '../../../base/route.ts'
import { findOrganization, lockOrganization } from '../organization-store.ts'
import { toOrganizationRole } from '../roles/organization-role.ts'
import { shareOrganizationRoles } from '../roles/organization-role-store.ts'
import {
  addJitValues,
  type JitKind,
  listJitRoles,
  listJitSsoConnectors,
  listJitValues,
  removeJitValue,
  removeOtherJitValues,
  shareSsoConnectors,
} from './jit-store.ts'

/** Who joins an organization on coming, and what they are given there. Changes are no events; joining is. */
export const jitOperations = ({ database: { knex }, mutate }: Pick<ManagementDependencies, 'database' | 'mutate'>) => {
  /** The organization, locked. Roles must be there, and for users. */
  const accept = async (trx: Knex, kind: JitKind, organizationId: string, values: readonly string[]) => {
    if ((await lockOrganization(trx, organizationId)) === undefined) throw unknownRelated([organizationId])
    if (kind === 'ssoConnector') requireAll(values, await shareSsoConnectors(trx, values))
    if (kind !== 'role' || values.length === 0) return
    const roles = await shareOrganizationRoles(trx, values, [])
    requireAll(values, roles)
    const others = roles.filter(({ type }) => type !== 'User')
    if (others.length > 0) {
      throw problem('entity.db_constraint_violated', {
        detail: 'Those who join are users: a machine-to-machine role is not for them.',
        data: { ids: others.map(({ id }) => id) },
      })
    }
  }

  const requireOrganization = async (id: string) => {
    requireFound(await findOrganization(knex, id), id)
  }

  return {
    async listEmailDomains(organizationId: string, page: Page | undefined) {
      await requireOrganization(organizationId)
      return listJitValues(knex, 'emailDomain', organizationId, page)
    },

    async listSsoConnectors(organizationId: string, page: Page | undefined) {
      await requireOrganization(organizationId)
      return listJitSsoConnectors(knex, organizationId, page)
    },

    async listRoles(organizationId: string, page: Page | undefined) {
      await requireOrganization(organizationId)
      const { rows, total } = await listJitRoles(knex, organizationId, page)
      return { rows: rows.map(toOrganizationRole), total }
    },

    /** Throws 422 `entity.unique_integrity_violation` for a domain that is there; other values are left alone. */
    add: (context: OperationContext, kind: JitKind, organizationId: string, values: readonly string[]): Promise<void> =>
      mutate(context, async ({ trx }) => {
        await accept(trx, kind, organizationId, values)
        const added = await addJitValues(trx, kind, organizationId, values)
        if (kind === 'emailDomain' && added === 0) throw problem('entity.unique_integrity_violation')
      }),

    /** The organization then has exactly these. */
    set: (context: OperationContext, kind: JitKind, organizationId: string, values: readonly string[]): Promise<void> =>
      mutate(context, async ({ trx }) => {
        await accept(trx, kind, organizationId, values)
        await removeOtherJitValues(trx, kind, organizationId, values)
        await addJitValues(trx, kind, organizationId, values)
      }),

    /** Throws 404 `entity.not_found` for what is not there. */
    remove: (context: OperationContext, kind: JitKind, organizationId: string, value: string): Promise<void> =>
      mutate(context, async ({ trx }) => {
        if ((await removeJitValue(trx, kind, organizationId, value)) === 0) throw notFound(value)
      }),
  }
}
