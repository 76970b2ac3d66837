import { z } from 'zod'
import { setting } from '../../platform/config.ts'
import { originSetting } from '../base/origin-setting.ts'

/** Where the console is: with the issuer, on a port of its own, or nowhere. */
export interface ConsoleSettings {
  isOn: boolean
  /** Of a listener of its own; undefined: the issuer's. */
  port: number | undefined
  /** Where browsers reach it, an origin. Default: the issuer's, or this machine's with a port of its own. */
  url: string | undefined
}

export const consoleDefaults: ConsoleSettings = { isOn: true, port: undefined, url: undefined }

export const consoleEnvironment = {
  CONSOLE: z.union([z.enum(['off', 'same']), setting.port()], { error: 'must be off, same or a port' }).default('same'),
  CONSOLE_URL: originSetting.optional(),
}

export const consoleSettingsOf = ({
  CONSOLE,
  CONSOLE_URL,
}: z.output<z.ZodObject<typeof consoleEnvironment>>): ConsoleSettings => ({
  isOn: CONSOLE !== 'off',
  port: typeof CONSOLE === 'number' ? CONSOLE : undefined,
  url: typeof CONSOLE === 'number' ? CONSOLE_URL : undefined,
})

/** Undefined: there is none. */
export const consoleUrlOf = ({ isOn, port, url }: ConsoleSettings, baseUrl: string): string | undefined => {
  if (!isOn) return undefined
  return port === undefined ? baseUrl : (url ?? `http://localhost:${port}`)
}
