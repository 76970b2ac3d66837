import type { Database } from '../../../platform/database/database.ts'
import type { Mutate } from '../../base/mutate.ts'
import { type Route, route } from '../../base/route.ts'
import { readSetting, writeSetting } from '../../base/settings-store.ts'
import { idTokenConfig, idTokenSettings } from './id-token-settings.ts'

export interface IdTokenConfigDependencies {
  database: Pick<Database, 'query'>
  mutate: Mutate
}

const path = '/configs/id-token'

export const idTokenConfigRoutes = ({ database, mutate }: IdTokenConfigDependencies): Route[] => [
  route({
    method: 'GET',
    path,
    operationId: 'getIdTokenConfig',
    summary: 'Answers which claims ID tokens have beside those of a profile.',
    scope: 'claims',
    status: 200,
    response: idTokenConfig,
    handle: async () => ({ body: await readSetting(database.query, idTokenSettings) }),
  }),
  route({
    method: 'PUT',
    path,
    operationId: 'putIdTokenConfig',
    summary: 'Sets which claims ID tokens have beside those of a profile.',
    scope: 'claims',
    body: idTokenConfig,
    status: 200,
    response: idTokenConfig,
    async handle(context) {
      const { enabledExtendedClaims = [] } = context.body
      return { body: await mutate(context, ({ trx }) => writeSetting(trx, idTokenSettings, { enabledExtendedClaims })) }
    },
  }),
]
