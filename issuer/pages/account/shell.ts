import { accountCard, type PageAccount } from '../account.ts'
import { errorSummary, notice, type Problem } from '../form.ts'
import { type Html, type HtmlValue, html } from '../html.ts'
import type { Locale } from '../locale.ts'
import type { MessageKey, MessageNames } from '../messages/translation.ts'
import { type Page, type PageParts, page } from '../page.ts'
import { type Say, sayIn } from '../say.ts'

/** A message without names. */
export type PlainMessage = { [Key in MessageKey]: [MessageNames<Key>] extends [never] ? Key : never }[MessageKey]

export interface AccountMenuGroup {
  /** The first group has none. */
  title: PlainMessage | undefined
  items: readonly { path: string; title: PlainMessage }[]
}

/** What all account pages have: who it is, where else one can go, and what this page sends. */
export interface AccountShell {
  locale: Locale
  account: PageAccount
  menu: readonly AccountMenuGroup[]
  /** Of this page; its forms are sent there. */
  path: string
  csrf: string
  /** How the page is called in the menu. */
  title: PlainMessage
  /** What went well just now. */
  notice?: PlainMessage | undefined
  /** For times: IANA. Default: UTC, which is said. */
  timeZone?: string | undefined
  /** Where the person confirms who they are, when that is due before anything is changed here. */
  confirmPath?: string | undefined
}

export interface AccountPageParts extends Pick<PageParts, 'scriptSource' | 'pictures'> {
  /** Default: the one of the menu. */
  title?: Html | undefined
  lead?: HtmlValue
  problems?: readonly Problem[] | undefined
  content: HtmlValue
  /** Default: `own`. */
  form?: PageParts['form'] | undefined
  /** A tick or an exclamation mark. */
  sign?: Html | undefined
}

export const overviewPath = '/account'
export const signOutPath = '/oidc/session/end'

export const accountPage = (shell: AccountShell, parts: AccountPageParts): Page => {
  const { locale } = shell
  const say = sayIn(locale)
  const { title = say(shell.title), lead, problems = [], content, form = 'own', sign, scriptSource, pictures } = parts
  return page({
    ...{ locale, title, form, scriptSource, pictures },
    name: 'account',
    isError: problems.length > 0,
    beside: menuOf(say, shell),
    body: html`${
      shell.path !== overviewPath && html`<p class="back"><a href="${overviewPath}">‹ ${say('accountBack')}</a></p>\n`
    }${sign}<h1>${title}</h1>
${lead && html`<p class="lead">${lead}</p>`}
${errorSummary(say, problems)}
${notice(shell.notice && problems.length === 0 ? say(shell.notice) : undefined)}
${content}`,
  })
}

const menuOf = (say: Say, { account, menu, path }: AccountShell): Html => {
  const link = (href: string, title: PlainMessage) =>
    html`<li><a href="${href}"${href === path && html` aria-current="page"`}>${say(title)}</a></li>\n`
  return html`<a class="skip button" href="#content">${say('accountSkip')}</a>
<nav class="menu" aria-label="${say('accountTitle')}">
${accountCard(account)}
${menu.map(({ title, items }) => {
  const list = items.map((item) => link(item.path, item.title))
  return title === undefined
    ? html`<ul>\n${list}</ul>\n`
    : html`<p id="menu-${title}">${say(title)}</p>\n<ul aria-labelledby="menu-${title}">\n${list}</ul>\n`
})}<ul class="leave">
${link(signOutPath, 'signOut')}</ul>
</nav>
`
}

/** In place of what changes something, until the person has confirmed who they are. */
export const confirmFirst = ({ locale, confirmPath }: AccountShell): Html | undefined => {
  const say = sayIn(locale)
  return confirmPath === undefined
    ? undefined
    : html`<div class="first"><p>${say('accountConfirmFirst')}</p>
<p class="actions"><a class="button" href="${confirmPath}">${say('reauthenticate')}</a></p></div>`
}

/** A form of the page with one button; `fields` are hidden. */
export const buttonForm = (
  { path, csrf }: Pick<AccountShell, 'path' | 'csrf'>,
  {
    choice,
    fields = {},
    text,
    label,
    look = 'quiet',
  }: {
    choice: string
    fields?: Readonly<Record<string, string>>
    text: Html
    /** Which of several, for those who hear it. */
    label?: Html | undefined
    look?: 'quiet' | 'danger' | 'main'
  },
): Html => html`
<form method="post" action="${path}">
<input type="hidden" name="csrf" value="${csrf}">
${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">\n`)}<p class="actions"><button${
  look !== 'main' && html` class="${look}"`
} name="choice" value="${choice}"${label && html` aria-label="${label}"`}>${text}</button></p>
</form>`
