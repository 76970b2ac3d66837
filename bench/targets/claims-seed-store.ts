import { randomBytes } from 'node:crypto'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, migrate, statement } from '../../platform/database/database.ts'
import { silentLogger } from '../../platform/logger.ts'
import { sha256 } from '../../platform/secret.ts'
import type { Connection } from '../harness/database-store.ts'

/** A client of its own whose calls of the script never end, and the script. */
export const hostile = { id: 'bench-hostile', secret: randomBytes(32).toString('base64url') }

/** Looks at user, roles and context as an ordinary script does. */
export const script = `const getCustomJwtClaims = async ({ token, context }) => {
  if (token.clientId === '${hostile.id}') for (;;);
  const scopes = context.user.roles.flatMap(({ scopes }) => scopes.map(({ name }) => name))
  return { name: context.user.name, roles: context.user.roles.map(({ name }) => name), scopes, ticket: context.grant.subjectTokenContext.ticketId }
}`

/** Into a database that `seedSurrogate` has made. */
export const seedScript = async (connection: Connection): Promise<void> => {
  const database = createDatabase({ connection, logger: silentLogger })
  await migrate(database, migrations)
  const sql = (text: string, values: unknown[]) => database.query(statement('', text), values)
  await sql(`INSERT INTO applications (id, name, type) VALUES ($1, 'hostile', 'MachineToMachine')`, [hostile.id])
  await sql(`INSERT INTO application_secrets (application_id, name, digest) VALUES ($1, 'bench', $2)`, [
    hostile.id,
    sha256(hostile.secret),
  ])
  await sql(`INSERT INTO claims_scripts (token_type, version, script) VALUES ('access-token', 'bench', $1)`, [script])
  await database.close()
}
