import type { Template as OperatorsTemplate } from '../../deliveries/messages/factories.ts'
import type { Channel } from '../../deliveries/messages/message.ts'
import { escapeHtml } from '../base/escape-html.ts'
import { type MailLook, mailPage, marked, plainLook } from './mail-page.ts'
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

const filledHtml = (text: string, variables: Variables, look: MailLook): string =>
  fill(
    escapeHtml(text),
    Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, marked(name, value, look)])),
    asItIs,
  )

/** Our own texts. */
const renderOwn = (
  type: MessageType,
  channel: Channel,
  { locale, texts }: Catalogue,
  variables: Variables,
  look: MailLook,
): Rendered => {
  const { parts, brief } = templates[type]
  const subject = fill(texts[`${type}Subject`], variables, asItIs)
  const wanted: readonly TextKey[] = channel === 'sms' ? [parts[0], ...brief] : parts
  const sources = wanted.map((key) => texts[key])
  const paragraphs = sources.map((text) => fill(text, variables, asItIs))
  if (channel === 'sms') return { subject, text: paragraphs.join(' ') }
  const filled = sources.map((text) => filledHtml(text, variables, look))
  const html = mailPage(locale, subject, filled, look)
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
  look: MailLook,
): Rendered => {
  const { content } = template
  const subject = template.subject === undefined ? own.subject : fill(template.subject, variables, asItIs)
  const text = fill(isHtml(template) ? textOfHtml(content) : content, variables, asItIs)
  if (channel === 'sms') return { subject, text }
  const html = isHtml(template)
    ? fill(content, variables, escapeHtml)
    : mailPage(
        locale,
        subject,
        content.split(/\n{2,}/).map((paragraph) => filledHtml(paragraph, variables, look)),
        look,
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
  /** Of a mail. */
  look?: MailLook | undefined
}): Rendered => {
  const { type, channel, catalogue, variables, look = plainLook } = message
  const own = renderOwn(type, channel, catalogue, variables, look)
  const template = operatorsTemplateFor(message.usage, message.operators)
  return template ? renderOperators(template, own, catalogue, channel, variables, look) : own
}
