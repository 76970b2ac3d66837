import { oneRow, type Query, statement } from '../../platform/database/database.ts'

/** What operators watch of the ledger, over all relays. Read at each scrape. */
export interface LedgerFigures {
  /** Seconds since the oldest event was recorded that no relay has ingested. */
  outboxAge: number
  /** How many have something to deliver. */
  lanes: number
  held: number
  dead: number
  openBreakers: number
  disabledHooks: number
  /** Hooks whose oldest open delivery is the oldest, in seconds. */
  oldest: { hookId: string; seconds: number; isOpen: boolean }[]
}

const totals = statement(
  'figures-totals',
  `SELECT coalesce((
       SELECT extract(epoch FROM now() - created_at) FROM outbox
       WHERE seq = (SELECT min(seq) FROM outbox_pending)), 0)::float8 AS "outboxAge",
     (SELECT count(*) FROM lanes) AS lanes,
     (SELECT count(*) FROM deliveries WHERE died_at IS NOT NULL AND state = 'dead' AND NOT test) AS dead,
     (SELECT count(*) FROM open_deliveries WHERE hook_id IN (
        SELECT id FROM hooks WHERE NOT enabled)) AS held,
     (SELECT count(*) FROM hooks WHERE gated AND open_since IS NOT NULL) AS "openBreakers",
     (SELECT count(*) FROM hooks WHERE NOT enabled) AS "disabledHooks"`,
)

// Only hooks that have lanes have open deliveries, and a lane's own are few.
const oldest = statement(
  'figures-oldest',
  `SELECT hook_id AS "hookId", extract(epoch FROM now() - min(open.created_at))::float8 AS seconds,
     bool_or(open_since IS NOT NULL) AS "isOpen"
   FROM open_deliveries AS open JOIN hooks ON hooks.id = hook_id WHERE hooks.enabled
   GROUP BY hook_id ORDER BY min(open.created_at) LIMIT $1`,
)

export const ledgerFigures = async (query: Query, mostHooks: number): Promise<LedgerFigures> => {
  const [counted, hooks] = await Promise.all([
    oneRow(query<Omit<LedgerFigures, 'oldest'>>(totals, [])),
    query<LedgerFigures['oldest'][number]>(oldest, [mostHooks]),
  ])
  return { ...counted, oldest: hooks }
}
