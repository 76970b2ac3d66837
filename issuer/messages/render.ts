import type { Template as OperatorsTemplate } from '../../deliveries/messages/factories.ts'
import type { Channel } from '../../deliveries/messages/message.ts'
import { type MessageType, templates } from './templates.ts'
import type { Catalogue } from './texts/catalogues.ts'
import type { TextKey } from './texts/translation.ts'

export interface Rendered {
  subject: string
  text: string
  html?: string
}

type Variables = Readonly<Record<string, string>>

/** `{name}` in our texts, `{{name}}` in those of operators; what is not known stays out. */
const fill = (text: string, variables: Variables, written: (value: string) => string): string =>
  text.replace(/\{\{\s*(\w+)\s*\}\}|\{(\w+)\}/g, (_, operators: string | undefined, own: string | undefined) => {
    const name = operators ?? own ?? ''
    return Object.hasOwn(variables, name) ? written(variables[name]!) : ''
  })

const asItIs = (text: string) => text

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '\0': '\ufffd',
}
export const escapeHtml = (text: string): string =>
  text.toWellFormed().replace(/[&<>"'\0]/g, (character) => entities[character]!)

/** The paragraphs of a mail as a page of their own. Nothing is loaded from anywhere. */
const page = (locale: string, subject: string, paragraphs: readonly string[]): string =>
  `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(subject)}</title></head><body style="margin:0;padding:24px;background:#fff;color:#111;font:16px/1.5 system-ui,sans-serif"><main style="max-width:32em;margin:0 auto">${paragraphs
    .map((paragraph) => `<p style="margin:0 0 1em">${paragraph}</p>`)
    .join('')}</main></body></html>`

/** A code can be copied with one touch; a link can be followed. */
const marked = (name: string, value: string): string => {
  const escaped = escapeHtml(value)
  if (name === 'code') return `<strong style="font-size:1.25em;letter-spacing:.1em">${escaped}</strong>`
  return name === 'link' ? `<a href="${escaped}">${escaped}</a>` : escaped
}

const filledHtml = (text: string, variables: Variables): string =>
  fill(
    escapeHtml(text),
    Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, marked(name, value)])),
    asItIs,
  )

/** Our own texts. */
const renderOwn = (
  type: MessageType,
  channel: Channel,
  { locale, texts }: Catalogue,
  variables: Variables,
): Rendered => {
  const { parts, brief } = templates[type]
  const subject = fill(texts[`${type}Subject`], variables, asItIs)
  const wanted: readonly TextKey[] = channel === 'sms' ? [parts[0], ...brief] : parts
  const sources = wanted.map((key) => texts[key])
  const paragraphs = sources.map((text) => fill(text, variables, asItIs))
  if (channel === 'sms') return { subject, text: paragraphs.join(' ') }
  const html = page(
    locale,
    subject,
    sources.map((text) => filledHtml(text, variables)),
  )
  return { subject, text: `${paragraphs.join('\n\n')}\n`, html }
}

const isHtml = ({ contentType, type }: OperatorsTemplate) => (contentType ?? type) === 'text/html'

/** What a reader without HTML gets of an operator's. */
const textOfHtml = (html: string): string =>
  html
    .replace(/<(style|script|head)\b[\s\S]*?<\/\1>/gi, '')
    .replace(/<br\s*\/?>|<\/(p|div|h\d|li|tr)>/gi, '\n')
    .replace(/<[^>]*>/g, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()

const renderOperators = (
  template: OperatorsTemplate,
  own: Rendered,
  { locale }: Catalogue,
  channel: Channel,
  variables: Variables,
): Rendered => {
  const { content } = template
  const subject = template.subject === undefined ? own.subject : fill(template.subject, variables, asItIs)
  const text = fill(isHtml(template) ? textOfHtml(content) : content, variables, asItIs)
  if (channel === 'sms') return { subject, text }
  const html = isHtml(template)
    ? fill(content, variables, escapeHtml)
    : page(
        locale,
        subject,
        content.split(/\n{2,}/).map((paragraph) => filledHtml(paragraph, variables)),
      )
  return { subject, text, html }
}

/** Which of an operator's templates is for this message. Notices have none: their words are ours. */
export const operatorsTemplateFor = (usage: string, all: readonly OperatorsTemplate[]): OperatorsTemplate | undefined =>
  all.find(({ usageType }) => usageType === usage) ??
  (usage === 'Notice' || usage === 'AlreadyRegistered' || usage === 'OrganizationInvitation'
    ? undefined
    : all.find(({ usageType }) => usageType === 'Generic'))

export const render = (message: {
  type: MessageType
  /** Its name for providers. */
  usage: string
  channel: Channel
  catalogue: Catalogue
  /** They were read by `readVariables`. */
  variables: Variables
  operators: readonly OperatorsTemplate[]
}): Rendered => {
  const { type, channel, catalogue, variables } = message
  const own = renderOwn(type, channel, catalogue, variables)
  const template = operatorsTemplateFor(message.usage, message.operators)
  return template ? renderOperators(template, own, catalogue, channel, variables) : own
}
