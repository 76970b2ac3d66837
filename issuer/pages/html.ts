import { escapeHtml } from '../base/escape-html.ts'

/** It is not exported, so that only `html` can make what has it: there is no function that takes markup as text. */
const markup = Symbol('markup')

/** Markup that is safe to send. */
export interface Html {
  readonly [markup]: string
}

/** Text is escaped, an array is its members one after the other, and `undefined` and `false` are nothing. */
export type HtmlValue = Html | string | number | undefined | false | readonly HtmlValue[]

/** A template of HTML. A value stands in text or between the quotes of an attribute, nowhere else. */
export const html = (strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html => {
  let text = strings[0]!
  for (const [index, value] of values.entries()) text += textOf(value) + strings[index + 1]!
  return { [markup]: text }
}

/** What a browser gets. */
export const render = (content: Html): string => content[markup]

const textOf = (value: HtmlValue): string => {
  if (value === undefined || value === false) return ''
  if (typeof value !== 'object') return escapeHtml(String(value))
  return markup in value ? value[markup] : value.map(textOf).join('')
}
