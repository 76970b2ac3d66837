import type { z } from 'zod'
import { setting } from '../../platform/config.ts'
import { parseNetwork } from '../../platform/http/address-guard.ts'
import { StartupError } from '../../platform/startup-error.ts'

/** The settings of messages, the same for whoever writes them and whoever sends them. */
export const messageSettings = {
  /** CIDRs, comma-separated, that providers may have although they are not public. Default none. */
  OUTBOUND_ALLOWED_NETWORKS: setting
    .list()
    .refine((list) => list.every((item) => parseNetwork(item)), 'must be CIDRs such as 10.0.0.0/8, separated by commas')
    .default([]),
  /** A file for messages of a channel without a connector. Development only. */
  MESSAGE_OUTBOX: setting.text().optional(),
  /** Connectors that write to files what they would send. Tests only. */
  MOCK_CONNECTORS: setting.flag().default(false),
  /** The folder of those files. */
  MOCK_CONNECTOR_MESSAGE_DIR: setting.text().default('.'),
  NODE_ENV: setting.text().optional(),
} satisfies z.ZodRawShape

export interface MessageConfig {
  /** CIDRs that providers may have although they are not public. Plain http goes to them alone. */
  allowedNetworks: readonly string[]
  /** A file that takes the messages of a channel without a connector. Undefined: there are no such messages. */
  outbox: string | undefined
  /** The folder that mock connectors write to. Undefined: there are none. */
  mockFolder: string | undefined
}

export const noMessages: MessageConfig = { allowedNetworks: [], outbox: undefined, mockFolder: undefined }

/** Throws `StartupError` for what must not be in production: both leave codes in readable files. */
export const messageConfigOf = (read: z.output<z.ZodObject<typeof messageSettings>>): MessageConfig => {
  const insecure = [read.MOCK_CONNECTORS && 'MOCK_CONNECTORS', read.MESSAGE_OUTBOX && 'MESSAGE_OUTBOX'].filter(Boolean)
  if (read.NODE_ENV === 'production' && insecure.length > 0)
    throw new StartupError(`${insecure.join(' and ')} must not be set with NODE_ENV=production.`, {
      hint: 'They write codes to readable files. Configure connectors instead (docs/messages.md).',
    })
  return {
    allowedNetworks: read.OUTBOUND_ALLOWED_NETWORKS,
    outbox: read.MESSAGE_OUTBOX,
    mockFolder: read.MOCK_CONNECTORS ? read.MOCK_CONNECTOR_MESSAGE_DIR : undefined,
  }
}
