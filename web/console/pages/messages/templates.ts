import type { Field } from '../../components/field.ts'

/** What messages are for, by the names under which connectors know them. */
export const usages = {
  Generic: 'All that have none of their own',
  SignIn: 'Signing in',
  Register: 'Registering',
  ForgotPassword: 'A forgotten password',
  BindNewIdentifier: 'A new address',
  MfaVerification: 'A second factor',
  BindMfa: 'A new second factor',
  UserPermissionValidation: 'Proving who one is, again',
  OrganizationInvitation: 'An invitation',
} as const
export type Usage = keyof typeof usages

interface Template {
  usageType: string
  subject?: string
  contentType?: string
  content?: string
}

/** The connector with its templates by what they are for. */
export const withTemplates = <Row extends { config: Record<string, unknown> }>(row: Row) => ({
  ...row,
  texts: Object.fromEntries(templatesOf(row.config).map((template) => [template.usageType, template])),
})

export const templatesOf = ({ templates }: Record<string, unknown>): Template[] =>
  Array.isArray(templates) ? (templates as Template[]) : []

/** And back: without content there is none. */
export const toTemplates = (texts: unknown): Template[] =>
  Object.entries(Object(texts) as Record<string, Partial<Template>>).flatMap(
    ([usageType, { subject, content, contentType, ...rest }]) =>
      content
        ? [{ ...rest, usageType, content, ...(subject && { subject }), ...(contentType && { contentType }) }]
        : [],
  )

export const templateFields = (usage: Usage, type: string): Field[] => [
  ...(type === 'Email'
    ? [
        { path: `texts.${usage}.subject`, label: 'Subject', empty: undefined } satisfies Field,
        {
          ...{ path: `texts.${usage}.contentType`, label: 'It is', kind: 'choice', empty: undefined },
          options: { '': 'Text, in our layout', 'text/html': 'HTML of your own' },
        } satisfies Field,
      ]
    : []),
  {
    ...{ path: `texts.${usage}.content`, label: 'Text', kind: 'lines', isCode: true, empty: undefined },
    hint: 'Names in two braces stand for what the message says: {{code}}, {{link}}. Empty: our words, in the language of whoever gets it.',
  },
]

const samples: Readonly<Record<string, string>> = { code: '482915', link: 'https://example.com/…', minutes: '10' }

/** As whoever gets it reads it, HTML without its marks. */
export const exampleOf = ({ subject = '', content = '', contentType }: Partial<Template>) => ({
  subject: fill(subject),
  text: fill(contentType === 'text/html' ? textOf(content) : content),
})

const fill = (text: string) => text.replaceAll(/\{\{\s*(\w+)\s*\}\}/g, (_, name: string) => samples[name] ?? '')

const textOf = (markup: string) =>
  markup
    .replaceAll(/<(style|script|head)\b[\s\S]*?<\/\1>/gi, '')
    .replaceAll(/<br\s*\/?>|<\/(p|div|h\d|li|tr)>/gi, '\n')
    .replaceAll(/<[^>]*>/g, '')
    .trim()
