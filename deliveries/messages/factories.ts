import { z } from 'zod'

/**
 * The kinds of connectors there are. Names and members of configurations are those that existing clients know, where
 * they know one.
 */

export const connectorType = z.enum(['Email', 'Sms', 'Social'])

export const line = (most = 256) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^[^\p{Cc}]*$/u, 'must be one line')

/** Operators' texts; `{{code}}` and the like stand for what the message says. */
const template = z.object({
  /** Which messages it is for; `Generic` for all that have no template of their own. */
  usageType: line(64),
  contentType: z.enum(['text/plain', 'text/html']).optional(),
  /** The same, under the name of other clients. */
  type: line(64).optional(),
  subject: line(998).optional(),
  content: z.string().min(1).max(65_536),
})
export type Template = z.output<typeof template>

const templates = z.array(template).max(100).default([])

/** Messages an hour, over all recipients. */
const limits = { maxPerHour: z.number().int().min(1).max(100_000_000).optional() }

export const secret = () => line(4_096)
const url = z.url({ protocol: /^https?$/ }).max(2_048)
/** Credentials in an address would be shown. */
export const endpoint = url.refine((text) => {
  const { username, password } = new URL(text)
  return username === '' && password === ''
}, 'must not hold a user name or password')

const name = line(253).regex(/^[A-Za-z\d.:_-]+$/, 'must be a host')
const mailAddress = line(320)

const httpEndpoint = {
  endpoint,
  /** The value of the header `Authorization`. */
  authorization: secret().optional(),
  /** Signs every request like a webhook. */
  signingKey: secret().optional(),
  templates,
  ...limits,
}

export const factory = <
  const Id extends string,
  const Type extends z.output<typeof connectorType>,
  Config extends z.ZodObject,
>(
  definition: Factory<Id, Type, Config>,
): Factory<Id, Type, Config> => definition

export interface Factory<
  Id extends string = string,
  Type extends z.output<typeof connectorType> = z.output<typeof connectorType>,
  Config extends z.ZodObject = z.ZodObject,
> {
  id: Id
  type: Type
  name: string
  description: string
  config: Config
  /** Members of the configuration that are never shown again, as paths. */
  secrets: readonly string[]
  /** Only with mock connectors. */
  mock?: true
  /** Of social ones: how identities name it. */
  target?: string
}

export const factories = [
  factory({
    id: 'simple-mail-transfer-protocol',
    type: 'Email',
    name: 'SMTP',
    description: 'Sends mail through an SMTP server.',
    config: z.object({
      host: name,
      port: z.number().int().min(1).max(65_535),
      /** TLS from the beginning (port 465). Otherwise STARTTLS is demanded unless `requireTLS` is false. */
      secure: z.boolean().optional(),
      requireTLS: z.boolean().optional(),
      auth: z.object({ user: line(), pass: secret() }).optional(),
      tls: z.object({ servername: name.optional(), ca: z.string().max(65_536).optional() }).optional(),
      /** `Name <address>` or an address. */
      fromEmail: mailAddress,
      replyTo: mailAddress.optional(),
      /** Connections at a time, of each relay. Default 5. */
      maxConnections: z.number().int().min(1).max(100).optional(),
      templates,
      ...limits,
    }),
    secrets: ['auth.pass'],
  }),
  factory({
    id: 'http-email',
    type: 'Email',
    name: 'HTTP e-mail',
    description: 'Posts every mail as JSON to a URL of yours.',
    config: z.object(httpEndpoint),
    secrets: ['authorization', 'signingKey'],
  }),
  factory({
    id: 'http-sms',
    type: 'Sms',
    name: 'HTTP SMS',
    description: 'Posts every SMS as JSON to a URL of yours.',
    config: z.object(httpEndpoint),
    secrets: ['authorization', 'signingKey'],
  }),
  factory({
    id: 'twilio-short-message-service',
    type: 'Sms',
    name: 'Twilio',
    description: 'Sends SMS with Twilio.',
    config: z.object({
      accountSID: line(64).regex(/^\w+$/),
      authToken: secret(),
      fromMessagingServiceSID: line(64).regex(/^\w+$/),
      /** Another address of the service, for its regions and for tests. */
      endpoint: endpoint.optional(),
      templates,
      ...limits,
    }),
    secrets: ['authToken'],
  }),
  factory({
    id: 'vonage-sms',
    type: 'Sms',
    name: 'Vonage',
    description: 'Sends SMS with Vonage.',
    config: z.object({
      apiKey: line(64),
      apiSecret: secret(),
      brandName: line(64),
      endpoint: endpoint.optional(),
      templates,
      ...limits,
    }),
    secrets: ['apiSecret'],
  }),
  factory({
    id: 'messagebird-sms',
    type: 'Sms',
    name: 'MessageBird',
    description: 'Sends SMS with MessageBird.',
    config: z.object({
      accessKey: secret(),
      originator: line(64),
      endpoint: endpoint.optional(),
      templates,
      ...limits,
    }),
    secrets: ['accessKey'],
  }),
  factory({
    id: 'mock-email-service',
    type: 'Email',
    name: 'Mock e-mail',
    description: 'Writes mail to a file.',
    config: z.object({ apiKey: secret(), fromEmail: line(), fromName: line().optional(), templates, ...limits }),
    secrets: ['apiKey'],
    mock: true,
  }),
  factory({
    id: 'mock-short-message-service',
    type: 'Sms',
    name: 'Mock SMS',
    description: 'Writes SMS to a file.',
    config: z.object({
      accountSID: line(),
      authToken: secret(),
      fromMessagingServiceSID: line(),
      templates,
      ...limits,
    }),
    secrets: ['authToken'],
    mock: true,
  }),
] as const

type Row = (typeof factories)[number]
/** The factories that send messages. */
export type SenderFactory = Extract<Row, { type: 'Email' | 'Sms' }>
export type SenderId = SenderFactory['id']
export type ConfigOf<Id extends Row['id']> = z.output<Extract<Row, { id: Id }>['config']>

/** What every configuration of a sender has. */
export const senderConfig = z.looseObject({ templates, ...limits })

const byId = new Map<string, Factory>(factories.map((row) => [row.id, row as Factory]))

/** Undefined when there is none, or only with mock connectors. */
export const findFactory = (id: string, { mocks }: { mocks: boolean }): Factory | undefined => {
  const found = byId.get(id)
  return found?.mock && !mocks ? undefined : found
}
