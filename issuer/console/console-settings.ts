import { z } from 'zod'
import { setting } from '../../platform/config.ts'
import { isPlainHttp } from '../../platform/http/plain-http.ts'
import { originSetting } from '../base/origin-setting.ts'

/** Where the console is: with the issuer, on a port of its own, or nowhere. */
export interface ConsoleSettings {
  isOn: boolean
  /** Of a listener of its own; undefined: the issuer's. */
  port: number | undefined
  /** Where browsers reach it, an origin. Default: the issuer's, or this machine's with a port of its own. */
  url: string | undefined
  /** Which gateways it asks, by the addresses of their inspection listeners. Default: none. */
  gateways?: readonly GatewayAddress[] | undefined
  /** `inspection.audience` of them. Default `{BASE_URL}/inspection`. */
  gatewaysAudience?: string | undefined
}

export interface GatewayAddress {
  name: string
  /** An origin. */
  url: string
}

export const consoleDefaults: ConsoleSettings = { isOn: true, port: undefined, url: undefined }

/** More would make each page ask too many. */
const mostGateways = 16
/** Names that are paths of their own below `/console/gateways`. */
const reserved = ['decisions', 'sessions']

const gateways = setting
  .list()
  .transform((items, context): GatewayAddress[] =>
    items.flatMap((item) => {
      const [, name = '', address = ''] = /^([a-z0-9-]{1,32})=(\S+)$/.exec(item) ?? []
      const parsed = originSetting.safeParse(address)
      if (name !== '' && !reserved.includes(name) && parsed.success && URL.parse(address)?.username === '')
        return [{ name, url: parsed.data }]
      context.addIssue(
        'must be name=url, separated by commas: a name of a-z 0-9 -, other than decisions and sessions, and an origin',
      )
      return []
    }),
  )
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'must not have a name twice')
  .refine((all) => all.length <= mostGateways, `must not be more than ${mostGateways}`)

export const consoleEnvironment = {
  CONSOLE: z.union([z.enum(['off', 'same']), setting.port()], { error: 'must be off, same or a port' }).default('same'),
  CONSOLE_URL: originSetting.optional(),
}

/** Of the issuer alone: whom the console asks. */
export const gatewaysEnvironment = {
  CONSOLE_GATEWAYS: gateways.default([]),
  CONSOLE_GATEWAYS_AUDIENCE: setting.text().max(2_048).optional(),
  /** Default false: `https`, unless the gateway is on this machine. */
  CONSOLE_GATEWAYS_ALLOW_HTTP: setting.flag().default(false),
}

/** What else must hold; for the schemas that have these settings. */
export const gatewaysAreSafe = {
  holds: (settings: GatewaysEnvironment): boolean =>
    settings.CONSOLE_GATEWAYS_ALLOW_HTTP || !settings.CONSOLE_GATEWAYS.some(({ url }) => isPlainHttp(url)),
  otherwise: {
    path: ['CONSOLE_GATEWAYS'],
    message:
      'must be https: tokens and what gateways decided would cross networks in clear (if it is meant: CONSOLE_GATEWAYS_ALLOW_HTTP=true)',
  },
}

type ConsoleEnvironment = z.output<z.ZodObject<typeof consoleEnvironment>>
type GatewaysEnvironment = z.output<z.ZodObject<typeof gatewaysEnvironment>>

export const consoleSettingsOf = (settings: ConsoleEnvironment & Partial<GatewaysEnvironment>): ConsoleSettings => {
  const { CONSOLE, CONSOLE_URL } = settings
  return {
    isOn: CONSOLE !== 'off',
    port: typeof CONSOLE === 'number' ? CONSOLE : undefined,
    url: typeof CONSOLE === 'number' ? CONSOLE_URL : undefined,
    gateways: settings.CONSOLE_GATEWAYS,
    gatewaysAudience: settings.CONSOLE_GATEWAYS_AUDIENCE,
  }
}

/** Undefined: there is none. */
export const consoleUrlOf = ({ isOn, port, url }: ConsoleSettings, baseUrl: string): string | undefined => {
  if (!isOn) return undefined
  return port === undefined ? baseUrl : (url ?? `http://localhost:${port}`)
}
