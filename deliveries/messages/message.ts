import { z } from 'zod'
import type { Envelope } from '../../platform/envelope.ts'
import type { connectorType } from './factories.ts'

/** A message to a person: what the issuer writes and the relay sends. */

export const channels = ['email', 'sms'] as const
export type Channel = (typeof channels)[number]

export const connectorTypeOf = { email: 'Email', sms: 'Sms' } as const satisfies Record<
  Channel,
  z.output<typeof connectorType>
>

/** What is sealed: everything that somebody could read. */
const content = z.object({
  /** A mail address, or a phone number in its E.164 form. */
  to: z.string(),
  /** As providers know it: `SignIn`, …, `Notice`. */
  usage: z.string(),
  variables: z.record(z.string(), z.string()),
  locale: z.string(),
  subject: z.string(),
  text: z.string(),
  html: z.string().optional(),
  /** Of the person who asked for it. */
  ip: z.string().optional(),
  /** Instead of the connector there is: one that is being tried out. */
  connector: z.object({ connectorId: z.string(), config: z.unknown() }).optional(),
})
export type MessageContent = z.output<typeof content>

export const messageContext = (id: string) => `message:${id}`

export const sealMessage = (envelope: Envelope, id: string, message: MessageContent): Buffer =>
  envelope.seal(JSON.stringify(message), messageContext(id))

export const openMessage = (envelope: Envelope, id: string, sealed: Buffer): MessageContent =>
  content.parse(JSON.parse(envelope.open(sealed, messageContext(id)).toString('utf8')))
