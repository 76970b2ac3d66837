import { randomBytes } from 'node:crypto'
import { type Database, statement } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import { sha256 } from '../../platform/secret.ts'
import { allowEverything } from './consent-scopes.ts'

/** A registered client. Public ones have no secret. */
export interface TestApplication {
  id: string
  secret?: string
}

type ApplicationType = 'Native' | 'SPA' | 'Traditional' | 'MachineToMachine' | 'Protected'

export interface ApplicationOptions {
  type?: ApplicationType
  name?: string
  /** Default: a random one, none for public clients. */
  secret?: string
  isThirdParty?: boolean
  allowTokenExchange?: boolean
}

/** Puts rows there directly, so that a test says what is, not how it came to be. */
export interface Factories {
  createUser(options?: { name?: string; isSuspended?: boolean; customData?: object }): Promise<{ id: string }>
  /** Default: an indicator of its own, no scopes, tokens of 3600 s. Returns the indicator. */
  createResource(options?: {
    indicator?: string
    scopes?: string[]
    isDefault?: boolean
    ttl?: number
  }): Promise<string>
  /** Default: Traditional, which has a secret. One of a third party may ask for everything that factories make. */
  createApplication(options?: ApplicationOptions): Promise<TestApplication>
  /** A machine-to-machine application that holds these scopes of the resource. */
  createMachine(resource: string, scopes: readonly string[]): Promise<TestApplication>
  addSecret(application: TestApplication, options: { name: string; value: string; expiresAt?: Date }): Promise<void>
  /** A role with these scopes of the resource, given to a user or an application. Returns the role's id. */
  grantUser(userId: string, resource: string, scopes: readonly string[], roleName?: string): Promise<string>
  grantApplication(application: TestApplication, resource: string, scopes: readonly string[]): Promise<string>
  suspend(userId: string, suspended?: boolean): Promise<void>
  /** Any statement, for what no factory covers. */
  sql<Row extends object = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<Row[]>
}

const publicTypes = ['Native', 'SPA']

export const createFactories = ({ query }: Database): Factories => {
  const sql: Factories['sql'] = (text, values = []) => query(statement('', text), values)

  const grant = async (
    assignment: string,
    type: string,
    holder: string,
    resource: string,
    scopes: readonly string[],
    name?: string,
  ) => {
    const id = newId()
    await sql('INSERT INTO roles (id, name, description, type) VALUES ($1, $2, $2, $3)', [
      id,
      name ?? `role ${id}`,
      type,
    ])
    const added = await sql(
      `INSERT INTO role_scopes (role_id, scope_id)
       SELECT $1, s.id FROM scopes s JOIN resources r ON r.id = s.resource_id WHERE r.indicator = $2 AND s.name = ANY ($3)
       RETURNING scope_id`,
      [id, resource, scopes],
    )
    if (added.length !== scopes.length) throw new Error(`Not all of ${scopes.join(', ')} are scopes of ${resource}.`)
    await sql(assignment, [holder, id])
    return id
  }

  const createApplication: Factories['createApplication'] = async ({
    type = 'Traditional',
    name = 'An application',
    secret,
    isThirdParty = false,
    ...options
  } = {}) => {
    const id = newId()
    const value = secret ?? (publicTypes.includes(type) ? undefined : randomBytes(32).toString('base64url'))
    await sql(
      'INSERT INTO applications (id, name, type, is_third_party, custom_client_metadata) VALUES ($1, $2, $3, $4, $5)',
      [id, name, type, isThirdParty, JSON.stringify({ allowTokenExchange: options.allowTokenExchange })],
    )
    if (isThirdParty) await sql(allowEverything)
    if (value === undefined) return { id }
    await sql(`INSERT INTO application_secrets (application_id, name, digest) VALUES ($1, 'Default secret', $2)`, [
      id,
      sha256(value),
    ])
    return { id, secret: value }
  }

  const grantApplication: Factories['grantApplication'] = ({ id }, resource, scopes) =>
    grant(
      'INSERT INTO application_roles (application_id, role_id) VALUES ($1, $2)',
      'MachineToMachine',
      id,
      resource,
      scopes,
    )

  return {
    sql,
    createApplication,
    async createMachine(resource, scopes) {
      const machine = await createApplication({ type: 'MachineToMachine' })
      await grantApplication(machine, resource, scopes)
      return machine
    },
    async createUser({ name = 'Somebody', isSuspended = false, customData = {} } = {}) {
      const id = newId(12)
      await sql('INSERT INTO users (id, name, is_suspended, custom_data) VALUES ($1, $2, $3, $4)', [
        id,
        name,
        isSuspended,
        JSON.stringify(customData),
      ])
      return { id }
    },
    async createResource({ indicator, scopes = [], isDefault = false, ttl = 3600 } = {}) {
      const id = newId()
      const own = indicator ?? `https://api.example.test/${id}`
      await sql(
        'INSERT INTO resources (id, name, indicator, is_default, access_token_ttl) VALUES ($1, $2, $2, $3, $4)',
        [id, own, isDefault, ttl],
      )
      await sql('INSERT INTO scopes (id, resource_id, name) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])', [
        scopes.map(() => newId()),
        scopes.map(() => id),
        scopes,
      ])
      await sql(allowEverything)
      return own
    },
    async addSecret({ id }, { name, value, expiresAt }) {
      await sql('INSERT INTO application_secrets (application_id, name, digest, expires_at) VALUES ($1, $2, $3, $4)', [
        id,
        name,
        sha256(value),
        expiresAt ?? null,
      ])
    },
    grantUser: (userId, resource, scopes, roleName) =>
      grant('INSERT INTO user_roles (user_id, role_id) VALUES ($1, $2)', 'User', userId, resource, scopes, roleName),
    grantApplication,
    async suspend(userId, suspended = true) {
      await sql('UPDATE users SET is_suspended = $2 WHERE id = $1', [userId, suspended])
    },
  }
}
