import type { Database } from '../../platform/database/database.ts'
import type { Mutate } from '../base/mutate.ts'
import { type Route, route } from '../base/route.ts'
import { patchSetting } from '../base/settings-store.ts'
import { accountCenter, accountCenterPatch, accountSettings, readAccountSettings, toAccountCenter } from './settings.ts'

export interface AccountCenterDependencies {
  database: Pick<Database, 'query'>
  mutate: Mutate
}

const path = '/account-center'

/** What people may do to their own accounts, for administrators. */
export const accountCenterRoutes = ({ database, mutate }: AccountCenterDependencies): Route[] => [
  route({
    method: 'GET',
    path,
    operationId: 'getAccountCenterSettings',
    summary: 'Reads which fields of their own accounts people may see and change.',
    scope: 'sign-in',
    status: 200,
    response: accountCenter,
    handle: async () => ({ body: toAccountCenter(await readAccountSettings(database.query)) }),
  }),
  route({
    method: 'PATCH',
    path,
    operationId: 'updateAccountCenterSettings',
    summary: 'Sets which fields of their own accounts people may see and change; fields that are left out stay.',
    scope: 'sign-in',
    body: accountCenterPatch,
    status: 200,
    response: accountCenter,
    async handle(context) {
      const { fields, ...rest } = context.body
      const changed = await mutate(context, ({ trx }) => patchSetting(trx, accountSettings, { ...rest, ...fields }))
      return { body: toAccountCenter(changed) }
    },
  }),
]
