import type { Field } from '../../components/field.ts'
import { valueAt } from '../../components/record-values.ts'

/** Fields for what a kind of connector is configured with, from its JSON Schema. */

interface Schema {
  type?: string
  enum?: readonly string[]
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  items?: Schema
}

/** What stands for a secret in answers; sent back, it means the one that is stored. */
const masked = '********'

const secrets = /^(clientSecret|privateKey|authToken|apiSecret|accessKey|pass|authorization|signingKey)$/
/** Templates have a page of their own. */
const elsewhere = ['templates']

/** What a name does not say by itself. */
const words: Readonly<Record<string, Pick<Field, 'label'> & Partial<Field>>> = {
  secure: { label: 'TLS from the beginning', hint: 'As on port 465.' },
  requireTLS: { label: 'STARTTLS is a must' },
  user: { label: 'User' },
  pass: { label: 'Password' },
  servername: { label: 'Name in its certificate' },
  ca: { label: 'Certificate authority', hint: 'In PEM, where it is none that is known.', kind: 'lines' },
  fromEmail: { label: 'From', placeholder: 'Acme <no-reply@example.com>' },
  replyTo: { label: 'Reply to' },
  maxPerHour: { label: 'At most so many messages an hour' },
  maxConnections: { label: 'Connections at a time' },
  endpoint: { label: 'Address', placeholder: 'https://…' },
  authorization: { label: 'Header Authorization' },
  clientId: { label: 'Client id' },
  clientSecret: { label: 'Client secret' },
  issuer: { label: 'Issuer', placeholder: 'https://login.example.com' },
  tenantId: { label: 'Tenant', hint: 'common, organizations, consumers, or the id of one.' },
  cloudInstance: { label: 'National cloud' },
  privateKey: { label: 'Private key', hint: 'The text of the .p8 file.', kind: 'lines' },
  scope: { label: 'Scopes', placeholder: 'openid profile email' },
  prompts: { label: 'Prompts' },
  tokenEndpointAuthMethod: { label: 'How it authenticates at the token endpoint' },
  trustUnverifiedEmail: { label: 'Trust addresses that the provider does not call verified' },
}

const spoken = (name: string): string =>
  `${name.charAt(0).toUpperCase()}${name.slice(1).replaceAll(/[A-Z]+/g, (letters) => ` ${letters.length > 1 ? letters : letters.toLowerCase()}`)}`

/** `isNew`: without a stored secret there must be one. */
export const configFields = (schema: Schema, isNew: boolean, path = 'config', isNeeded = true): Field[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, member]): Field[] => {
    if (elsewhere.includes(name)) return []
    const own = `${path}.${name}`
    const isRequired = isNeeded && (schema.required?.includes(name) ?? false)
    if (member.properties) return configFields(member, isNew, own, isRequired)
    const isSecret = secrets.test(name)
    return [
      {
        ...{ path: own, label: spoken(name), empty: undefined, kind: kindOf(member, isSecret), isSecret },
        ...(member.enum && {
          options: { '': 'As it says itself', ...Object.fromEntries(member.enum.map((one) => [one, one])) },
        }),
        isCode: !['integer', 'boolean'].includes(member.type ?? ''),
        isRequired: isRequired && (isNew || !isSecret) && member.type !== 'boolean',
        autoComplete: isSecret ? 'new-password' : 'off',
        ...(isSecret && !isNew && { placeholder: 'stays as it is' }),
        ...words[name],
      },
    ]
  })

const kindOf = ({ type, enum: options }: Schema, isSecret: boolean): NonNullable<Field['kind']> => {
  if (isSecret) return 'password'
  if (options) return 'choice'
  return ({ boolean: 'flag', integer: 'number', number: 'number', array: 'list' } as const)[type ?? ''] ?? 'text'
}

/** With nothing where a secret is stored. */
export const withoutMasks = <Row extends { config: Record<string, unknown> }>(row: Row): Row => ({
  ...row,
  config: Object.fromEntries(Object.entries(row.config).flatMap(([name, value]) => member(name, value))),
})

const member = (name: string, value: unknown): [string, unknown][] => {
  if (value === masked) return []
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[name, value]]
  return [[name, Object.fromEntries(Object.entries(value).flatMap(([inner, one]) => member(inner, one)))]]
}

/** A configuration as it is sent: a secret that was not typed anew is the stored one. */
export const withStoredSecrets = (config: Record<string, unknown>, stored: unknown): Record<string, unknown> => {
  const all = { ...config }
  for (const [name, value] of Object.entries(Object(stored))) {
    if (value === masked) all[name] ||= masked
    else if (typeof value === 'object' && value !== null && !Array.isArray(value) && valueAt(all, name))
      all[name] = withStoredSecrets(all[name] as Record<string, unknown>, value)
  }
  return all
}
