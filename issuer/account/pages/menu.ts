import type { AccountMenuGroup } from '../../pages/account/index.ts'
import { type AccountPage, type AccountVisit, groups } from './account-page.ts'

/** The pages that there are, in groups, in the order of the table. */
export const menuOf = (
  pages: readonly AccountPage[],
  known: Pick<AccountVisit, 'settings' | 'experience'>,
): AccountMenuGroup[] =>
  (['first', 'you', 'signIn', 'access', 'data'] as const)
    .map((name) => ({
      title: name === 'first' ? undefined : groups[name],
      items: pages
        .filter(({ group, isShown }) => group === name && isShown?.(known) !== false)
        .map(({ path, title }) => ({ path, title })),
    }))
    .filter(({ items }) => items.length > 0)
