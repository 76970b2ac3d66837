import { type Query, statement } from '../../platform/database.ts'

const select = statement(
  'cors-origin',
  `SELECT EXISTS (SELECT FROM applications
     WHERE application_origins(oidc_client_metadata, custom_client_metadata) @> ARRAY[$1]) AS registered`,
)

/** Whether an application is registered with this web origin. */
export const isRegisteredOrigin = async (query: Query, origin: string): Promise<boolean> =>
  (await query<{ registered: boolean }>(select, [origin]))[0]!.registered
