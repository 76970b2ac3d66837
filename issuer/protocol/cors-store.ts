import { type Query, statement } from '../../platform/database/database.ts'
import { onlyRow } from '../base/only-row.ts'

const select = statement(
  'cors-origin',
  `SELECT EXISTS (SELECT FROM applications
     WHERE application_origins(oidc_client_metadata, custom_client_metadata) @> ARRAY[$1]) AS registered`,
)

/** Whether an application is registered with this web origin. */
export const isRegisteredOrigin = async (query: Query, origin: string): Promise<boolean> =>
  onlyRow(await query<{ registered: boolean }>(select, [origin])).registered
