import { type Query, statement } from '../../../platform/database/database.ts'

const select = statement(
  'sign-in-pages-of-applications',
  `SELECT DISTINCT value->>'signInPages' AS page FROM application_sign_in_experiences
   WHERE value->>'signInPages' IS NOT NULL LIMIT 1000`,
)

/** The addresses of pages that applications have of their own. */
export const signInPagesOfApplications = async (query: Query): Promise<string[]> =>
  (await query<{ page: string }>(select, [])).map(({ page }) => page)
