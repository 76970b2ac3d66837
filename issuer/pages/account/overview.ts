import { foreignName } from '../foreign-text.ts'
import { type Html, html } from '../html.ts'
import type { Page } from '../page.ts'
import { type Say, sayIn } from '../say.ts'
import { type AccountShell, accountPage, overviewPath, type PlainMessage, signOutPath } from './shell.ts'

/** In words of ours, or as the person wrote it. */
export type Fact = { say: PlainMessage } | { text: string }

export interface OverviewPage {
  /** What stands beside the name of a page, by its path. */
  facts: ReadonlyMap<string, Fact>
}

/** Where everything is: in a narrow window the only way to the other pages. */
export const overviewPage = (shell: AccountShell, { facts }: OverviewPage): Page => {
  const say = sayIn(shell.locale)
  return accountPage(shell, {
    title: say('accountTitle'),
    form: 'none',
    content: shell.menu
      .map(({ title, items }) => ({ title, items: items.filter(({ path }) => path !== overviewPath) }))
      .filter(({ items }) => items.length > 0)
      .concat({ title: undefined, items: [{ path: signOutPath, title: 'signOut' }] })
      .map(
        ({ title, items }) => html`<section>${title && html`<h2>${say(title)}</h2>`}
<ul class="rows">
${items.map(
  (item) => html`<li><a href="${item.path}"><b>${say(item.title)}</b>${factIn(say, facts.get(item.path))}</a></li>
`,
)}</ul></section>
`,
      ),
  })
}

const factIn = (say: Say, fact: Fact | undefined): Html | undefined =>
  fact && html`<span>${'say' in fact ? say(fact.say) : foreignName(fact.text, 100)}</span>`
