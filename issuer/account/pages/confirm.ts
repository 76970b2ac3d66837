import type { AccountPage } from './account-page.ts'

const path = '/account/confirm'

/** Where somebody confirms who they are, and which page of ours they come back to. */
export const confirmPath = (next: string): string => `${path}?${new URLSearchParams({ next })}`

export const confirm: AccountPage = {
  path,
  title: 'reauthenticate',
  async show() {
    throw new Error('not yet')
  },
}
