import { problem } from './errors/problems.ts'

/** Of one record, as JSON: every list, and every event of a user, carries it along. */
const maxBytes = 262_144

/** Free-form data of a record as it may be stored. Throws 422 `entity.value_too_long` above 256 kB. */
export const storableCustomData = <Data extends Record<string, unknown> | undefined>(data: Data): Data => {
  if (data !== undefined && Buffer.byteLength(JSON.stringify(data)) > maxBytes) {
    throw problem('entity.value_too_long', { detail: `customData: must be at most ${maxBytes} bytes of JSON` })
  }
  return data
}

/** Merged at the first level. Throws as `storableCustomData`. */
export const mergedCustomData = (current: Record<string, unknown>, more: Record<string, unknown>) =>
  storableCustomData({ ...current, ...more })
