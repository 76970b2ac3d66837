import { connectorContext, UnreadableConnector } from '../../../deliveries/messages/connector-store.ts'
import { type Query, statement } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'

/** An identity provider that is configured, with its secrets. */
export interface IdentityProvider {
  id: string
  kind: 'social' | 'sso'
  /** Of the factory, or the name of the kind of enterprise provider. */
  provider: string
  /** Of an enterprise connector. */
  name: string | null
  /** Of a social one. */
  target: string | null
  config: Record<string, unknown>
  /** In lower case. */
  domains: string[]
  syncProfile: boolean
  /** Metadata of a social one, branding of an enterprise's. */
  look: Record<string, unknown>
  createdAt: Date
  updatedAt: Date
}
export type NewIdentityProvider = Omit<IdentityProvider, 'createdAt' | 'updatedAt'>

type Sealed = Omit<IdentityProvider, 'config'> & { sealedConfig: Buffer }

const columns = `id, kind, provider, name, target, sealed_config AS "sealedConfig", sync_profile AS "syncProfile", look,
  created_at AS "createdAt", updated_at AS "updatedAt",
  ARRAY(SELECT domain FROM identity_provider_domains d WHERE d.provider_id = p.id ORDER BY position) AS domains`

const ofKind = statement(
  'identity-provider-list',
  `SELECT ${columns} FROM identity_providers p WHERE kind = $1 ORDER BY created_at, id`,
)
const one = statement('identity-provider-find', `SELECT ${columns} FROM identity_providers p WHERE id = $1`)
const locked = statement(
  'identity-provider-lock',
  `SELECT ${columns} FROM identity_providers p WHERE id = $1 FOR UPDATE`,
)
const shared = statement(
  'identity-provider-share',
  `SELECT ${columns} FROM identity_providers p WHERE id = $1 FOR SHARE OF p`,
)
const ofTargets = statement(
  'identity-provider-of-targets',
  `SELECT ${columns} FROM identity_providers p WHERE target = ANY ($1::text[]) ORDER BY array_position($1::text[], target)`,
)
const ofDomain = statement(
  'identity-provider-of-domain',
  `SELECT ${columns} FROM identity_providers p WHERE id = (SELECT provider_id FROM identity_provider_domains WHERE domain = $1)`,
)
const insert = statement(
  'identity-provider-insert',
  `INSERT INTO identity_providers (id, kind, provider, name, target, sealed_config, sync_profile, look)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id`,
)
const update = statement(
  'identity-provider-update',
  `UPDATE identity_providers SET name = $2, sealed_config = $3, sync_profile = $4, look = $5,
     updated_at = clock_timestamp() WHERE id = $1`,
)
const dropDomains = statement(
  'identity-provider-domains-drop',
  'DELETE FROM identity_provider_domains WHERE provider_id = $1',
)
const addDomains = statement(
  'identity-provider-domains-add',
  `INSERT INTO identity_provider_domains (domain, provider_id, position)
   SELECT domain, $1, position FROM unnest($2::text[]) WITH ORDINALITY AS one (domain, position) ORDER BY domain`,
)
const remove = statement(
  'identity-provider-delete',
  'DELETE FROM identity_providers WHERE id = $1 AND kind = $2 RETURNING id',
)

/** Configurations are sealed to the provider they belong to. A violated constraint is thrown as it comes. */
export const createIdentityProviderStore = (envelope: Envelope) => {
  const seal = (id: string, config: object) => envelope.seal(JSON.stringify(config), connectorContext(id))
  const open = ({ sealedConfig, ...row }: Sealed): IdentityProvider => {
    try {
      return { ...row, config: JSON.parse(envelope.open(sealedConfig, connectorContext(row.id)).toString('utf8')) }
    } catch (cause) {
      throw new UnreadableConnector(`The configuration of the connector ${row.id} cannot be read.`, { cause })
    }
  }
  const opened = async (rows: Promise<Sealed[]>) => (await rows).map(open)
  const first = async (rows: Promise<Sealed[]>): Promise<IdentityProvider | undefined> => (await opened(rows))[0]
  const setDomains = async (query: Query, { id, domains }: Pick<IdentityProvider, 'id' | 'domains'>) => {
    await query(dropDomains, [id])
    if (domains.length > 0) await query(addDomains, [id, domains])
  }

  return {
    /** Oldest first. */
    list: (query: Query, kind: IdentityProvider['kind']) => opened(query<Sealed>(ofKind, [kind])),
    find: (query: Query, id: string) => first(query<Sealed>(one, [id])),
    /** No other change of it until the transaction ends. */
    lock: (query: Query, id: string) => first(query<Sealed>(locked, [id])),
    /** No change of it until the transaction ends. */
    share: (query: Query, id: string) => first(query<Sealed>(shared, [id])),
    /** Social ones, in the order of the targets. */
    ofTargets: (query: Query, targets: readonly string[]) => opened(query<Sealed>(ofTargets, [targets])),
    ofDomain: (query: Query, domain: string) => first(query<Sealed>(ofDomain, [domain])),
    async insert(query: Query, row: NewIdentityProvider): Promise<void> {
      const { id, kind, provider, name, target, config, syncProfile, look } = row
      await query(insert, [id, kind, provider, name, target, seal(id, config), syncProfile, JSON.stringify(look)])
      await setDomains(query, row)
    },
    async update(query: Query, row: NewIdentityProvider): Promise<void> {
      const { id, name, config, syncProfile, look } = row
      await query(update, [id, name, seal(id, config), syncProfile, JSON.stringify(look)])
      await setDomains(query, row)
    },
    /** False when there was none. */
    remove: async (query: Query, id: string, kind: IdentityProvider['kind']): Promise<boolean> =>
      (await query(remove, [id, kind])).length > 0,
  }
}

export type IdentityProviderStore = ReturnType<typeof createIdentityProviderStore>
