import { type Query, queryOf } from '../../platform/database/database.ts'
import type { Mutate } from '../base/mutate.ts'
import type { OperationContext } from '../base/route.ts'
import type { Settings } from '../directory/sign-in-experience/settings.ts'

/** A change of connectors: it is in force here before it is answered. */
export type ConnectorChange = <Result>(
  context: OperationContext,
  work: (query: Query) => Promise<Result>,
) => Promise<Result>

export const createConnectorChange =
  ({ mutate, settings }: { mutate: Mutate; settings: Pick<Settings, 'refreshed'> }): ConnectorChange =>
  async (context, work) => {
    const result = await mutate(context, ({ trx }) => work(queryOf(trx)))
    if (context.joined) context.joined.afterCommit(settings.refreshed)
    else await settings.refreshed()
    return result
  }
