import { z } from 'zod'
import type { Connector } from '../../deliveries/messages/connector-store.ts'
import { connectorType, type Factory, factories as senderFactories } from '../../deliveries/messages/factories.ts'
import { problem } from '../base/errors/problems.ts'
import { id, jsonObject, timestamp } from '../base/schemas.ts'
import { socialFactories } from './providers/factories.ts'

/** All kinds of connectors. */
export const factories: readonly Factory[] = [...senderFactories, ...socialFactories].map((row) => row as Factory)

/** What stands for a secret in every answer; sent back, it means the one that is stored. */
export const masked = '********'

export const newConnector = z.object({
  /** Of the factory. */
  connectorId: id,
  config: jsonObject.default({}),
  syncProfile: z.boolean().default(false),
  metadata: jsonObject.default({}),
})
export type NewConnector = z.output<typeof newConnector>

export const connectorPatch = z.object({
  /** All of it anew; a masked secret stays. */
  config: jsonObject.optional(),
  syncProfile: z.boolean().optional(),
  metadata: jsonObject.optional(),
})
export type ConnectorPatch = z.output<typeof connectorPatch>

export const testBody = z
  .object({
    email: z.string().max(320).optional(),
    phone: z.string().max(32).optional(),
    config: jsonObject,
    locale: z.string().max(35).default('en'),
  })
  .refine(({ email, phone }) => (email === undefined) !== (phone === undefined), 'needs an email or a phone')

export const authorizationUriBody = z.object({
  /** Unguessable, and another one each time. */
  state: z.string().min(1).max(512),
  /** Registered at the provider. */
  redirectUri: z.url().max(2_048),
})

const ofFactory = {
  type: connectorType,
  name: z.string(),
  description: z.string(),
  target: z.string(),
  platform: z.literal('Universal').nullable(),
}

export const connector = z.object({
  id: z.string(),
  connectorId: z.string(),
  ...ofFactory,
  config: jsonObject,
  syncProfile: z.boolean(),
  metadata: jsonObject,
  createdAt: timestamp,
})

export const connectorFactory = z.object({ id: z.string(), ...ofFactory, configSchema: jsonObject })

const shownOf = ({ type, name, description, target, id: factoryId }: Factory) => ({
  type,
  name,
  description,
  target: target ?? factoryId,
  platform: type === 'Social' ? ('Universal' as const) : null,
})

/** Runs through the members that hold secrets. */
const withSecrets = (
  { secrets }: Pick<Factory, 'secrets'>,
  config: Record<string, unknown>,
  change: (value: unknown, path: readonly string[]) => unknown,
): Record<string, unknown> => {
  const copy = structuredClone(config)
  for (const path of secrets) {
    const names = path.split('.')
    const last = names.pop()!
    const holder = names.reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], copy)
    if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, last)) continue
    const members = holder as Record<string, unknown>
    members[last] = change(members[last], [...names, last])
  }
  return copy
}

const valueAt = (config: Record<string, unknown>, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], config)

/** Where secrets go. */
const addressOf = ({ endpoint, host, port, issuer, cloudInstance }: Record<string, unknown>) =>
  JSON.stringify([endpoint, host, port, issuer, cloudInstance])

/**
 * The stored secrets for those that were sent back masked. Undefined when they would go elsewhere than so far: whoever
 * may change where a connector leads must not learn them by that.
 */
export const unmasked = (
  factory: Pick<Factory, 'secrets'>,
  config: Record<string, unknown>,
  stored: Record<string, unknown>,
): Record<string, unknown> | undefined => {
  let isMasked = false
  const opened = withSecrets(factory, config, (value, path) => {
    if (value !== masked) return value
    isMasked = true
    return valueAt(stored, path)
  })
  return isMasked && addressOf(config) !== addressOf(stored) ? undefined : opened
}

const byId = new Map(factories.map((row) => [row.id, row]))

/** The configuration without its secrets. */
export const withMasks = (factory: Pick<Factory, 'secrets'>, config: Record<string, unknown>) =>
  withSecrets(factory, config, () => masked)

/** The row as the API shows it. */
export const toConnector = (row: Connector & { target?: string | null }): z.input<typeof connector> => {
  const factory = byId.get(row.connectorId)
  if (factory === undefined) throw problem('server.error', { detail: `The factory ${row.connectorId} is gone.` })
  return {
    id: row.id,
    connectorId: row.connectorId,
    ...shownOf(factory),
    ...(row.target && { target: row.target }),
    config: withMasks(factory, row.config),
    syncProfile: row.syncProfile,
    metadata: row.target ? { ...row.metadata, target: row.target } : row.metadata,
    createdAt: row.createdAt.getTime(),
  }
}

export const toFactory = (factory: Factory): z.input<typeof connectorFactory> => ({
  id: factory.id,
  ...shownOf(factory),
  configSchema: z.toJSONSchema(factory.config, { io: 'input' }) as Record<string, unknown>,
})
