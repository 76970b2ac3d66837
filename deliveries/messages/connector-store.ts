import { type Query, statement } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'

/** A provider that is configured, with its secrets. */
export interface Connector {
  id: string
  /** Of the factory. */
  connectorId: string
  type: 'Email' | 'Sms' | 'Social'
  config: Record<string, unknown>
  syncProfile: boolean
  metadata: Record<string, unknown>
  createdAt: Date
  updatedAt: Date
}

/** As it is stored: its secrets are sealed. */
export type SealedConnector = Omit<Connector, 'config'> & { sealedConfig: Buffer }

export type SenderType = Exclude<Connector['type'], 'Social'>

/** Its secrets cannot be opened: another key-encryption key is configured than it was sealed with. */
export class UnreadableConnector extends Error {
  override readonly name = 'UnreadableConnector'
}

export const connectorContext = (id: string) => `connector:${id}`

const columns = `id, connector_id AS "connectorId", type, sealed_config AS "sealedConfig", sync_profile AS "syncProfile",
  metadata, created_at AS "createdAt", updated_at AS "updatedAt"`

const all = statement('connector-list', `SELECT ${columns} FROM connectors ORDER BY created_at, id`)
const one = statement('connector-find', `SELECT ${columns} FROM connectors WHERE id = $1`)
const locked = statement('connector-lock', `SELECT ${columns} FROM connectors WHERE id = $1 FOR UPDATE`)
const senders = statement('connectors-that-send', `SELECT ${columns} FROM connectors WHERE type <> 'Social'`)
const sender = statement('connector-of-type', `SELECT ${columns} FROM connectors WHERE type = $1`)
const insert = statement(
  'connector-insert',
  `INSERT INTO connectors (id, connector_id, type, sealed_config, sync_profile, metadata)
   VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
)
// Of two that come at once the second one replaces the first.
const lockAll = statement('connector-lock-all', `LOCK TABLE connectors IN SHARE ROW EXCLUSIVE MODE`)
const replaceSender = statement('connector-replace', `DELETE FROM connectors WHERE type = $1`)
const update = statement(
  'connector-update',
  `UPDATE connectors SET sealed_config = $2, sync_profile = $3, metadata = $4, updated_at = clock_timestamp()
   WHERE id = $1`,
)
const remove = statement('connector-delete', `DELETE FROM connectors WHERE id = $1 RETURNING id`)

/** Those that send mail or SMS, at most one of each. */
export const findSenders = (query: Query): Promise<SealedConnector[]> => query<SealedConnector>(senders, [])

/** Configurations are sealed to the connector they belong to. */
export const createConnectorStore = (envelope: Envelope) => {
  const seal = (id: string, config: object) => envelope.seal(JSON.stringify(config), connectorContext(id))
  const configOf = ({ id, sealedConfig }: SealedConnector): Record<string, unknown> => {
    try {
      return JSON.parse(envelope.open(sealedConfig, connectorContext(id)).toString('utf8'))
    } catch (cause) {
      throw new UnreadableConnector(`The configuration of the connector ${id} cannot be read.`, { cause })
    }
  }
  const open = ({ sealedConfig, ...row }: SealedConnector): Connector => ({
    ...row,
    config: configOf({ ...row, sealedConfig }),
  })
  const found = async (rows: Promise<SealedConnector[]>) => {
    const [row] = await rows
    return row && open(row)
  }
  return {
    /** Throws `UnreadableConnector`, as does whatever else answers a connector. */
    open,
    list: async (query: Query) => (await query<SealedConnector>(all, [])).map(open),
    find: (query: Query, id: string) => found(query<SealedConnector>(one, [id])),
    /** No other change of it until the transaction ends. */
    lock: (query: Query, id: string) => found(query<SealedConnector>(locked, [id])),
    /** The one that sends mail, or SMS. */
    sender: (query: Query, type: SenderType) => found(query<SealedConnector>(sender, [type])),
    /** One that sends takes the place of the one before. */
    async insert(query: Query, connector: Omit<Connector, 'createdAt' | 'updatedAt'>): Promise<void> {
      const { id, connectorId, type, config, syncProfile, metadata } = connector
      await query(lockAll, [])
      if (type !== 'Social') await query(replaceSender, [type])
      await query(insert, [id, connectorId, type, seal(id, config), syncProfile, JSON.stringify(metadata)])
    },
    async update(query: Query, { id, config, syncProfile, metadata }: Connector): Promise<void> {
      await query(update, [id, seal(id, config), syncProfile, JSON.stringify(metadata)])
    },
    /** False when there was none. */
    remove: async (query: Query, id: string): Promise<boolean> => (await query(remove, [id])).length > 0,
  }
}

export type ConnectorStore = ReturnType<typeof createConnectorStore>
