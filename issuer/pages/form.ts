import { type Html, type HtmlValue, html } from './html.ts'
import type { Locale } from './locale.ts'
import { durationIn, type Say } from './say.ts'

/** What all forms are made of: a summary of what is wrong, fields with the same words, and a CSRF value. */

export interface Problem {
  message: Html
  /** The `id` of the field where it can be put right, when that is one. */
  field?: string | undefined
}

/** It has the focus, so that it is read first; links lead to the fields. */
export const errorSummary = (say: Say, problems: readonly Problem[]): Html | undefined =>
  problems.length === 0
    ? undefined
    : html`<div class="problem" role="alert" tabindex="-1" autofocus aria-labelledby="problem">
<h2 id="problem">${say('problemHeading')}</h2>
${problems.map(({ message, field }) => html`<p>${field === undefined ? message : html`<a href="#${field}">${message}</a>`}</p>`)}
</div>`

export interface FieldOptions {
  /** Also its name. */
  id: string
  label: Html
  hint?: Html | undefined
  problems: readonly Problem[]
  input(attributes: HtmlValue): Html
}

/** What is wrong with it stands between its name and itself. */
export const field = ({ id, label, hint, problems, input }: FieldOptions): Html => {
  const wrong = problems.filter((problem) => problem.field === id)
  const described = [hint && `${id}-hint`, wrong.length > 0 && `${id}-error`].filter(Boolean).join(' ')
  return html`<div class="field"><label for="${id}">${label}</label>
${hint && html`<p class="small" id="${id}-hint">${hint}</p>\n`}${
  wrong.length > 0 &&
  html`<p class="message" id="${id}-error">${wrong.map(({ message }, index) => [index > 0 && html`<br>`, message])}</p>\n`
}${input([wrong.length > 0 && html` aria-invalid="true"`, described !== '' && html` aria-describedby="${described}"`])}</div>`
}

/** What went well. */
export const notice = (text: Html | undefined): Html | undefined =>
  text && html`<p class="notice" role="status">${text}</p>`

/** Begins a form of ours. */
export const formOf = ({ action, csrf }: { action: string; csrf: string }, content: HtmlValue): Html => html`
<form method="post" action="${action}" novalidate>
<input type="hidden" name="csrf" value="${csrf}">
${content}
</form>`

export const lockedText = (say: Say, locale: Locale, minutes: number | undefined): Html =>
  minutes === undefined ? say('lockedForNow') : say('locked', { duration: durationIn(locale, minutes) })

export const tooManyRequestsText = (say: Say, locale: Locale, minutes: number | undefined): Html =>
  minutes === undefined
    ? say('tooManyRequestsForNow')
    : say('tooManyRequests', { duration: durationIn(locale, minutes) })
