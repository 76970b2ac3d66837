import type { Query } from '../../../platform/database/database.ts'
import { readSetting } from '../../base/settings-store.ts'
import { type ExtendedClaim, idTokenSettings } from './id-token-settings.ts'

/** The claims that ID tokens may have besides, as they are set now. */
export const enabledExtendedClaims = async (query: Query): Promise<readonly ExtendedClaim[]> =>
  (await readSetting(query, idTokenSettings)).enabledExtendedClaims

/**
 * The same for a statement that reads other things too: an SQL expression, whose value `parseIdTokenSettings` takes.
 * Null where nothing was set.
 */
export const idTokenSettingsSql = `(SELECT value FROM settings WHERE name = '${idTokenSettings.name}')`

export const parseIdTokenSettings = (value: unknown): { enabledExtendedClaims: readonly ExtendedClaim[] } =>
  idTokenSettings.schema.parse(value ?? {})
