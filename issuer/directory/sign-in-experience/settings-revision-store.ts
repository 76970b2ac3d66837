import { oneRow, type Query, statement } from '../../../platform/database/database.ts'
import { sessionSettings } from '../../tokens/sessions/session-settings.ts'
import { type ApplicationExperience, applicationExperience, signInExperience } from './sign-in-experience.ts'

/** NOTIFY channel: a setting changed. Triggers announce on it (migration 0031). */
export const settingsChannel = 'surrogate_settings'

const revision = statement('settings-revision', 'SELECT revision FROM settings_revision')

/** It grows with every change of a setting, in the order of commits. */
export const settingsRevision = async (query: Query): Promise<number> =>
  (await oneRow(query<{ revision: number }>(revision, []))).revision

const load = statement(
  'settings-load',
  `SELECT revision, (SELECT value FROM settings WHERE name = '${signInExperience.name}') AS experience,
     (SELECT value FROM settings WHERE name = '${sessionSettings.name}') AS session
   FROM settings_revision`,
)

export interface LoadedSettings {
  revision: number
  experience: unknown
  session: unknown
}

/** What is stored of all that signing in reads, and the revision that it is of: one snapshot. */
export const loadSettings = (query: Query): Promise<LoadedSettings> => oneRow(query<LoadedSettings>(load, []))

const select = statement(
  'application-experience-find',
  'SELECT value FROM application_sign_in_experiences WHERE application_id = $1',
)

/** Undefined when the application has nothing of its own. */
export const findApplicationExperience = async (
  query: Query,
  applicationId: string,
): Promise<ApplicationExperience | undefined> => {
  const [row] = await query<{ value: unknown }>(select, [applicationId])
  return row && applicationExperience.parse(row.value)
}

const merge = statement(
  'application-experience-merge',
  `INSERT INTO application_sign_in_experiences AS stored (application_id, value) VALUES ($1, $2)
   ON CONFLICT (application_id) DO UPDATE SET value = stored.value || excluded.value, updated_at = now()
   RETURNING value`,
)

/** The members of `patch`; the others stay. Answers it as it is now. */
export const patchApplicationExperience = async (
  query: Query,
  applicationId: string,
  patch: Record<string, unknown>,
): Promise<ApplicationExperience> =>
  applicationExperience.parse(
    (await oneRow(query<{ value: unknown }>(merge, [applicationId, JSON.stringify(patch)]))).value,
  )
