import { type Query, statement } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import { onlyRow } from '../base/only-row.ts'
import type { ClaimsScript, ScriptKind } from './claims-script.ts'

/** Scripts in the database, their environment variables sealed. */
export type ClaimsScriptStore = ReturnType<typeof createClaimsScriptStore>

export interface StoredScript extends ClaimsScript {
  kind: ScriptKind
  version: string
}

/** What the environment variables of a script are sealed with. */
export const environmentContext = (kind: string): string => `claims-environment:${kind}`

const columns = `token_type AS kind, version, script, sealed_environment AS "sealedEnvironment",
  block_issuance_on_error AS "blockIssuanceOnError", token_sample AS "tokenSample", context_sample AS "contextSample"`
const one = statement('claims-script-find', `SELECT ${columns} FROM claims_scripts WHERE token_type = $1`)
const oneLocked = statement(
  'claims-script-lock',
  `SELECT ${columns} FROM claims_scripts WHERE token_type = $1 FOR UPDATE`,
)
const all = statement('claims-script-list', `SELECT ${columns} FROM claims_scripts ORDER BY token_type`)
// Two that write the first one at once follow each other.
const upsert = statement(
  'claims-script-upsert',
  `INSERT INTO claims_scripts (token_type, version, script, sealed_environment, block_issuance_on_error, token_sample, context_sample)
   VALUES ($1, $2, $3, $4, $5, $6, $7)
   ON CONFLICT (token_type) DO UPDATE SET version = excluded.version, script = excluded.script,
     sealed_environment = excluded.sealed_environment, block_issuance_on_error = excluded.block_issuance_on_error,
     token_sample = excluded.token_sample, context_sample = excluded.context_sample, updated_at = now()
   RETURNING created_at = updated_at AS created`,
)
const remove = statement(
  'claims-script-delete',
  `DELETE FROM claims_scripts WHERE token_type = $1 RETURNING token_type`,
)

/** An SQL expression for a token request: the versions of the scripts there are, as `kind version …`, or NULL. */
export const scriptVersionsSql = `(SELECT string_agg(token_type || ' ' || version, ' ') FROM claims_scripts)`

/** Undefined when no token has a script. */
export type ScriptVersions = Readonly<Partial<Record<ScriptKind, string>>> | undefined

/** Reads `scriptVersionsSql`. */
export const scriptVersions = (text: string | null): ScriptVersions => {
  if (text === null) return undefined
  const words = text.split(' ')
  return Object.fromEntries(words.flatMap((kind, at) => (at % 2 === 0 ? [[kind, words[at + 1]]] : [])))
}

interface Row {
  kind: ScriptKind
  version: string
  script: string
  sealedEnvironment: Buffer | null
  blockIssuanceOnError: boolean
  tokenSample: Record<string, unknown> | null
  contextSample: Record<string, unknown> | null
}

export const createClaimsScriptStore = (envelope: Envelope) => {
  const opened = ({ sealedEnvironment, tokenSample, contextSample, ...row }: Row): StoredScript => ({
    ...row,
    ...(sealedEnvironment && {
      environmentVariables: JSON.parse(envelope.open(sealedEnvironment, environmentContext(row.kind)).toString()),
    }),
    ...(tokenSample && { tokenSample }),
    ...(contextSample && { contextSample }),
  })
  const found = async (rows: Promise<Row[]>) => {
    const [row] = await rows
    return row && opened(row)
  }

  return {
    find: (query: Query, kind: ScriptKind) => found(query<Row>(one, [kind])),
    /** No other change of it until the transaction ends. */
    lock: (query: Query, kind: ScriptKind) => found(query<Row>(oneLocked, [kind])),
    list: async (query: Query) => (await query<Row>(all, [])).map(opened),
    /** Whether there was none before. */
    async put(query: Query, kind: ScriptKind, value: ClaimsScript): Promise<{ created: boolean }> {
      const { script, environmentVariables, blockIssuanceOnError, tokenSample, contextSample } = value
      const rows = await query<{ created: boolean }>(upsert, [
        kind,
        newId(),
        script,
        environmentVariables ? envelope.seal(JSON.stringify(environmentVariables), environmentContext(kind)) : null,
        blockIssuanceOnError,
        tokenSample ? JSON.stringify(tokenSample) : null,
        contextSample ? JSON.stringify(contextSample) : null,
      ])
      return onlyRow(rows)
    },
    /** False when there was none. */
    remove: async (query: Query, kind: ScriptKind): Promise<boolean> => (await query(remove, [kind])).length > 0,
  }
}
