import type { Knex } from 'knex'
import { type Database, queryOf } from '../../../platform/database/database.ts'
import { unknownId } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutate } from '../../base/mutate.ts'
import type { OperationContext } from '../../base/route.ts'
import { patchSetting, readSetting } from '../../base/settings-store.ts'
import { findApplication } from '../applications/application-store.ts'
import { missingAssets } from '../assets/asset-store.ts'
import { checkSignInExperience, checkSignInPages } from './check.ts'
import { checkCustomCss } from './custom-css.ts'
import { assetPath } from './links.ts'
import type { Settings } from './settings.ts'
import { findApplicationExperience, patchApplicationExperience } from './settings-revision-store.ts'
import {
  type ApplicationExperience,
  applicationExperience,
  type SignInExperience,
  signInExperience,
} from './sign-in-experience.ts'

export interface SignInExperienceDependencies {
  database: Pick<Database, 'query' | 'knex'>
  mutate: Mutate
  settings: Pick<Settings, 'refreshed'>
  /** Where browsers reach the issuer. */
  baseUrl: string
}

type Branded = Pick<SignInExperience | ApplicationExperience, 'branding' | 'customCss'>

/** Of what was parsed, those members that were sent: the others are only filled in. */
const sent = (body: object, fields: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([name]) => fields.includes(name)))

export const signInExperienceOperations = (dependencies: SignInExperienceDependencies) => {
  const { database, mutate, settings, baseUrl } = dependencies

  /** Pictures that are ours exist, and the stylesheet is one that may be served. */
  const checkBranding = async (trx: Knex.Transaction, { branding, customCss }: Branded) => {
    const used = [...Object.values(branding), ...checkCustomCss(customCss ?? '').assets]
    const paths = used.filter((link): link is string => link !== undefined && assetPath.test(link))
    const missing = await missingAssets(queryOf(trx), paths)
    if (missing.length > 0) throw problem('sign_in_experiences.asset_not_found', { data: { assets: missing } })
  }

  const requireApplication = async (knex: Knex, id: string) => {
    if (!(await findApplication(knex, id))) throw unknownId(id)
  }

  return {
    read: (): Promise<SignInExperience> => readSetting(database.query, signInExperience),

    /** Two that change different members at once both have their way, and what comes of both is checked. */
    async update(context: OperationContext, body: object): Promise<SignInExperience> {
      const experience = await mutate(context, async ({ trx }) => {
        const merged = await patchSetting(trx, signInExperience, sent(body, context.fields))
        checkSignInExperience(merged, baseUrl)
        await checkBranding(trx, merged)
        return merged
      })
      await settings.refreshed()
      return experience
    },

    async readOf(applicationId: string): Promise<ApplicationExperience> {
      await requireApplication(database.knex, applicationId)
      return (await findApplicationExperience(database.query, applicationId)) ?? applicationExperience.parse({})
    },

    async updateOf(context: OperationContext, applicationId: string, body: object): Promise<ApplicationExperience> {
      const experience = await mutate(context, async ({ trx }) => {
        await requireApplication(trx, applicationId)
        const merged = await patchApplicationExperience(queryOf(trx), applicationId, sent(body, context.fields))
        checkSignInPages(merged.signInPages, baseUrl)
        await checkBranding(trx, merged)
        return merged
      })
      await settings.refreshed()
      return experience
    },
  }
}
