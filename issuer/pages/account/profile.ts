import { pictureOrigin } from '../client.ts'
import { foreignName } from '../foreign-text.ts'
import { field, type Problem } from '../form.ts'
import { type Html, html } from '../html.ts'
import type { Page } from '../page.ts'
import { type Say, sayIn } from '../say.ts'
import { type AccountError, problemsOf } from './problems.ts'
import { type AccountShell, accountPage, type PlainMessage } from './shell.ts'

export interface ProfileField {
  /** Also its `id`. */
  name: string
  label: PlainMessage
  hint?: PlainMessage | undefined
  value: string
  /** HTML §4.10.18.7 */
  autocomplete?: string | undefined
  isEditable: boolean
}

export interface ProfilePage {
  /** The address of a picture, if it may be shown. */
  picture: string | undefined
  groups: readonly { title: PlainMessage | undefined; fields: readonly ProfileField[] }[]
  error?: AccountError | undefined
}

/** What applications may learn of the person. */
export const profilePage = (shell: AccountShell, { picture, groups, error }: ProfilePage): Page => {
  const say = sayIn(shell.locale)
  const problems = problemsOf(say, error)
  const isEditable = groups.some(({ fields }) => fields.some((one) => one.isEditable))
  const shown = pictureOrigin(picture) === undefined ? undefined : picture
  const content = groups
    .filter(({ fields }) => fields.length > 0)
    .map(({ title, fields }) =>
      title === undefined
        ? fields.map((one) => fieldOf(say, one, problems))
        : html`<section><h2>${say(title)}</h2>\n${fields.map((one) => fieldOf(say, one, problems))}</section>`,
    )
  return accountPage(shell, {
    lead: say('accountProfileText'),
    problems,
    pictures: shown === undefined ? [] : [shown],
    content: html`${shown !== undefined && html`<img class="avatar" src="${shown}" alt="" width="88" height="88">`}
${
  isEditable
    ? html`<form method="post" action="${shell.path}" novalidate>
<input type="hidden" name="csrf" value="${shell.csrf}">
${content}
<p class="actions"><button name="choice" value="save">${say('accountSave')}</button></p>
</form>`
    : html`${content}<p class="small">${say('accountReadOnly')}</p>`
}`,
  })
}

const fieldOf = (
  say: Say,
  { name, label, hint, value, autocomplete = 'off', isEditable }: ProfileField,
  problems: readonly Problem[],
): Html =>
  isEditable
    ? field({
        id: name,
        label: say(label),
        hint: hint && say(hint),
        problems,
        input: (described) =>
          html`<input id="${name}" name="${name}" type="text" value="${value}" dir="auto" maxlength="2048" autocomplete="${autocomplete}"${described}>`,
      })
    : html`<dl class="facts"><dt>${say(label)}</dt><dd>${value === '' ? say('accountNone') : foreignName(value, 300)}</dd></dl>\n`
