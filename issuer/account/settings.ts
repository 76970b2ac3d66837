import { z } from 'zod'
import type { Query } from '../../platform/database/database.ts'
import { problem } from '../base/errors/problems.ts'
import { readSetting, type Setting } from '../base/settings-store.ts'

/** What people may see and change of their own accounts, by the names that existing clients know. */
export const accountFields = [
  'name',
  'avatar',
  'profile',
  'email',
  'phone',
  'password',
  'username',
  'social',
  'customData',
  'mfa',
  'passkey',
  /** Where they are signed in, and what applications may do for them. */
  'session',
  /** The file with everything that is kept about them. */
  'export',
  /** Of the account, by its owner. */
  'deletion',
] as const
export type AccountField = (typeof accountFields)[number]

export const fieldControl = z.enum(['Off', 'ReadOnly', 'Edit'])
type FieldControl = z.output<typeof fieldControl>

const fieldsOf = <Schema extends z.ZodType>(schema: Schema) =>
  Object.fromEntries(accountFields.map((name) => [name, schema])) as Record<AccountField, Schema>

/** Flat, so that two who change different fields at once both have their way. */
export const accountSettings = {
  name: 'account',
  schema: z.object({
    enabled: z.boolean().default(true),
    // What an issuer of another version knows is none of these.
    ...fieldsOf(fieldControl.catch('Off').default('Edit')),
  }),
} satisfies Setting<z.ZodType>
export type AccountSettings = z.output<typeof accountSettings.schema>

/** As the Management API answers it. */
export const accountCenter = z.object({ enabled: z.boolean(), fields: z.object(fieldsOf(fieldControl)) })
export const accountCenterPatch = z.object({
  enabled: z.boolean().optional(),
  fields: z.object(fieldsOf(fieldControl)).partial().optional(),
})

export const toAccountCenter = ({ enabled, ...fields }: AccountSettings): z.output<typeof accountCenter> => ({
  enabled,
  fields,
})

export const readAccountSettings = (query: Query): Promise<AccountSettings> => readSetting(query, accountSettings)

/** Throws 403 unless people may look after their accounts at all. */
export const requireEnabled = ({ enabled }: AccountSettings): void => {
  if (!enabled) throw problem('account_center.not_enabled')
}

/** Throws 403 unless the field is at least this. */
export const requireField = (settings: AccountSettings, field: AccountField, wanted: 'ReadOnly' | 'Edit'): void => {
  const control: FieldControl = settings[field]
  if (control === 'Edit' || control === wanted) return
  throw problem(wanted === 'Edit' ? 'account_center.field_not_editable' : 'account_center.field_not_enabled', {
    data: { field },
  })
}
