import { type Fact, overviewPage, overviewPath } from '../../pages/account/index.ts'
import type { AccountPage } from './account-page.ts'

/** The first page: what there is, and how it stands. */
export const overviewOf = (others: readonly AccountPage[]): AccountPage => ({
  path: overviewPath,
  title: 'accountOverview',
  group: 'first',
  async show(visit) {
    const facts = new Map<string, Fact>()
    for (const page of others) {
      if (page.isShown?.(visit) === false) continue
      const fact = await page.fact?.(visit)
      if (fact) facts.set(page.path, fact)
    }
    return overviewPage(visit.shell, { facts })
  },
})
