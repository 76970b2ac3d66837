import { type Html, type HtmlValue, html } from './html.ts'
import type { Locale } from './locale.ts'
import { catalogues } from './messages/catalogues.ts'
import type { MessageKey, MessageNames, Messages } from './messages/translation.ts'

type Values<Key extends MessageKey> = [MessageNames<Key>] extends [never]
  ? []
  : [values: Readonly<Record<MessageNames<Key>, Html | string>>]

/** A message in the language of the page, with what stands for the names in braces. */
export type Say = <Key extends MessageKey>(key: Key, ...values: Values<Key>) => Html

/** As text, for where markup cannot stand. */
export const accountName = (locale: Locale): string => catalogues[locale].accountTitle

export const sayIn = (locale: Locale): Say => {
  const messages: Messages = catalogues[locale]
  return (key, ...[values]) => {
    // Between texts stand names: split keeps what the parentheses capture.
    const parts = messages[key].split(/\{(\w+)\}/)
    const named: Readonly<Record<string, HtmlValue>> = values ?? {}
    return html`${parts.map((part, index) => (index % 2 === 0 ? part : named[part]))}`
  }
}

/** `5 minutes`; from two hours on in hours. */
export const durationIn = (locale: Locale, minutes: number): string => {
  const inHours = minutes >= 120
  const format = new Intl.NumberFormat(locale, {
    style: 'unit',
    unit: inHours ? 'hour' : 'minute',
    unitDisplay: 'long',
  })
  return format.format(inHours ? Math.ceil(minutes / 60) : Math.max(1, Math.ceil(minutes)))
}
