import { newId } from '../../../platform/ids.ts'
import { changesOf } from '../../base/change.ts'
import { storableCustomData } from '../../base/custom-data.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { notFound, unknownId } from '../../base/errors/not-found.ts'
import type { OperationContext } from '../../base/route.ts'
import {
  type NewOrganization,
  type Organization,
  type OrganizationPatch,
  type OrganizationRow,
  toOrganization,
} from './organization.ts'
import {
  deleteOrganization,
  findOrganization,
  insertOrganization,
  lockOrganization,
  type OrganizationColumns,
  updateOrganization,
} from './organization-store.ts'

/** Every change of an organization, with its event. Its members: `members.ts`; their roles: `member-roles.ts`. */
export const organizationOperations = ({
  database: { knex },
  mutate,
}: Pick<ManagementDependencies, 'database' | 'mutate'>) => {
  const find = async (id: string): Promise<OrganizationRow> => {
    const row = await findOrganization(knex, id)
    if (row === undefined) throw unknownId(id)
    return row
  }

  return {
    get: async (id: string): Promise<Organization> => toOrganization(await find(id)),

    create: (context: OperationContext, input: NewOrganization): Promise<Organization> =>
      mutate(context, async ({ trx, record }) => {
        const columns = columnsOf(input) as OrganizationColumns
        const created = toOrganization(await insertOrganization(trx, { id: newId(12), ...columns }))
        await record({ type: 'Organization.Created', ...about(created.id), data: created })
        return created
      }),

    update: (context: OperationContext, id: string, patch: OrganizationPatch): Promise<Organization> =>
      mutate(context, async ({ trx, record }) => {
        const row = await lockOrganization(trx, id)
        if (row === undefined) throw unknownId(id)
        const changes = changesOf<OrganizationColumns>(row, columnsOf(patch))
        if (changes === undefined) return toOrganization(row)
        const updated = toOrganization(await updateOrganization(trx, id, changes))
        await record({ type: 'Organization.Data.Updated', ...about(id), data: updated })
        return updated
      }),

    /** Members stop being members; that alone is no event. */
    delete: (context: OperationContext, id: string): Promise<void> =>
      mutate(context, async ({ trx, record }) => {
        if ((await deleteOrganization(trx, id)) === 0) throw notFound(id)
        await record({ type: 'Organization.Deleted', ...about(id), data: null })
      }),
  }
}

/** What every event of an organization has. */
export const about = (id: string) => ({ entity: { kind: 'organization' as const, id }, organizationId: id })

const columnsOf = (input: OrganizationPatch): Partial<OrganizationColumns> =>
  ({
    name: input.name,
    description: input.description,
    custom_data: storableCustomData(input.customData),
    is_mfa_required: input.isMfaRequired,
    color: input.color,
    branding: input.branding,
    custom_css: input.customCss,
  }) as Partial<OrganizationColumns>
