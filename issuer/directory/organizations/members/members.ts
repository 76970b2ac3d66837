import type { Knex } from 'knex'
import type { EventData } from '../../../../events/catalogue.ts'
import { refuseEscalation } from '../../../base/authorization.ts'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { notFound, requireAll, unknownRelated } from '../../../base/errors/not-found.ts'
import { problem } from '../../../base/errors/problems.ts'
import { managementScopesOfApplications } from '../../../base/management-scope-store.ts'
import type { Mutation } from '../../../base/mutate.ts'
import type { Caller, OperationContext } from '../../../base/route.ts'
import type { ApplicationRow } from '../../applications/application.ts'
import { about } from '../operations.ts'
import { lockOrganization } from '../organization-store.ts'
import { addMembers, type MemberKind, removeMember, removeOtherMembers, shareRecords } from './member-store.ts'

/** How events name those who came and went. */
const extrasNames = {
  user: { added: 'addedUserIds', removed: 'removedUserIds' },
  application: { added: 'addedApplicationIds', removed: 'removedApplicationIds' },
} as const

/** Of ids in one event; who must know all reads the members. */
const maxIdsOfEvent = 5_000

interface Change {
  added: readonly string[]
  removed: readonly string[]
}

/**
 * Who belongs to which organization, for users and machine-to-machine applications alike. A change is an event of the
 * organization.
 */
export const memberOperations = ({ mutate, indicators }: Pick<ManagementDependencies, 'mutate' | 'indicators'>) => {
  /**
   * The organization, and the users or applications, which cannot vanish meanwhile. Throws 422 for unknown ones, and
   * for applications of another type.
   */
  const accept = async (trx: Knex, kind: MemberKind, organizationId: string, ids: readonly string[]) => {
    if ((await lockOrganization(trx, organizationId)) === undefined) throw unknownRelated([organizationId])
    const rows = await shareRecords(trx, kind, ids)
    requireAll(ids, rows)
    if (kind === 'application') requireMachineToMachine(rows as ApplicationRow[])
  }

  const change = (
    context: OperationContext,
    kind: MemberKind,
    organizationId: string,
    work: (mutation: Mutation) => Promise<Change>,
    data: EventData<'Organization.Membership.Updated'> = null,
  ): Promise<void> =>
    mutate(context, async (mutation) => {
      const { added, removed } = await work(mutation)
      if (added.length + removed.length === 0) return
      if (kind === 'application') {
        await refuseEscalationOf(mutation.trx, context.caller, [...added, ...removed], indicators)
      }
      const names = extrasNames[kind]
      await mutation.record({
        type: 'Organization.Membership.Updated',
        ...about(organizationId),
        data,
        extras: {
          ...(added.length > 0 && { [names.added]: added.slice(0, maxIdsOfEvent) }),
          ...(removed.length > 0 && { [names.removed]: removed.slice(0, maxIdsOfEvent) }),
        },
      })
    })

  return {
    /** Members among them are left alone. `data` is what the event holds. */
    add: (
      context: OperationContext,
      kind: MemberKind,
      organizationId: string,
      ids: readonly string[],
      data: EventData<'Organization.Membership.Updated'>,
    ): Promise<void> =>
      change(
        context,
        kind,
        organizationId,
        async ({ trx }) => {
          await accept(trx, kind, organizationId, ids)
          return { added: await addMembers(trx, kind, organizationId, ids), removed: [] }
        },
        data,
      ),

    /** The organization then has exactly these; those who stay keep their roles. */
    set: (context: OperationContext, kind: MemberKind, organizationId: string, ids: readonly string[]): Promise<void> =>
      change(context, kind, organizationId, async ({ trx }) => {
        await accept(trx, kind, organizationId, ids)
        const removed = await removeOtherMembers(trx, kind, organizationId, ids)
        return { added: await addMembers(trx, kind, organizationId, ids), removed }
      }),

    /** Throws 404 `entity.not_found` for somebody who is no member. */
    remove: (context: OperationContext, kind: MemberKind, organizationId: string, id: string): Promise<void> =>
      change(context, kind, organizationId, async ({ trx }) => {
        await lockOrganization(trx, organizationId)
        if (!(await removeMember(trx, kind, organizationId, id))) throw notFound(id)
        return { added: [], removed: [id] }
      }),
  }
}

const requireMachineToMachine = (rows: readonly ApplicationRow[]) => {
  const others = rows.filter(({ type }) => type !== 'MachineToMachine')
  if (others.length > 0) throw problem('application.invalid_type', { data: { ids: others.map(({ id }) => id) } })
}

/** What applications belong to and may do is not changed by those who hold less of the Management API than they. */
export const refuseEscalationOf = (
  trx: Knex,
  caller: Caller,
  applicationIds: readonly string[],
  indicators: readonly string[],
): Promise<void> => refuseEscalation(caller, () => managementScopesOfApplications(trx, indicators, applicationIds))
