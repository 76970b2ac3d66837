import { z } from 'zod'
import { Secret } from './secret.ts'
import { StartupError } from './startup-error.ts'

/** Reads settings through one schema and reports **all** problems at once. An empty variable counts as unset. */
export const loadConfig = <Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  source: Record<string, string | undefined>,
): z.output<z.ZodObject<Shape>> => {
  const known = Object.keys(schema.shape).flatMap((name) => {
    const value = source[name]
    return value === undefined || value === '' ? [] : [[name, value] as const]
  })
  const result = schema.safeParse(Object.fromEntries(known))
  if (result.success) return result.data
  const given = new Set<PropertyKey | undefined>(known.map(([name]) => name))
  const lines = result.error.issues.map(({ path, message }) => {
    const isMissing = path.length === 1 && !given.has(path[0])
    return `  ${path.join('.')}: ${isMissing ? 'must be set' : message}`
  })
  throw new InvalidSettings(lines)
}

class InvalidSettings extends StartupError {
  readonly lines: readonly string[]

  constructor(lines: readonly string[]) {
    super(`The configuration is not valid:\n${lines.join('\n')}`, {
      hint: 'See docs/configuration.md for every setting, its unit and its default.',
    })
    this.lines = lines
  }
}

/** Loads the settings of several parts, so that what is wrong with any of them is told at once. */
export const loadAll = (...loads: readonly (() => unknown)[]): void => {
  const lines = new Set<string>()
  for (const load of loads) {
    try {
      load()
    } catch (error) {
      if (!(error instanceof InvalidSettings)) throw error
      for (const line of error.lines) lines.add(line)
    }
  }
  if (lines.size > 0) throw new InvalidSettings([...lines])
}

const units = new Map(Object.entries({ ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }))

/** `500ms`, `5s`, `10m`, `1h`, `14d` → milliseconds. */
export const parseDuration = (text: string): number | undefined => {
  const [, number, unit = ''] = /^(\d{1,9})([a-z]+)$/.exec(text) ?? []
  const ms = units.get(unit)
  return ms === undefined ? undefined : Number(number) * ms
}

/** Building blocks of configuration schemas; every one takes the text of an environment variable. */
export const setting = {
  text: () => z.string().trim().min(1),
  integer: (min: number, max: number) =>
    z
      .string()
      .regex(/^-?\d+$/, { error: 'must be a whole number', abort: true })
      .refine((value) => Number(value) >= min && Number(value) <= max, `must be between ${min} and ${max}`)
      .transform(Number),
  port: () => setting.integer(0, 65_535),
  flag: () => z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1'),
  secret: () => z.string().transform((value) => new Secret(value)),
  list: () =>
    z.string().transform((value) =>
      value
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
    ),
  duration: () =>
    z.string().transform((value, context) => {
      const milliseconds = parseDuration(value)
      if (milliseconds !== undefined) return milliseconds
      context.addIssue('must be a duration such as 500ms, 5s, 10m, 1h or 14d')
      return z.NEVER
    }),
  /** 32 bytes in base64. */
  key: () =>
    z.string().transform((value, context) => {
      const bytes = Buffer.from(value, 'base64')
      if (bytes.length === 32 && bytes.toString('base64').replace(/=+$/, '') === value.trim().replace(/=+$/, ''))
        return bytes
      context.addIssue('must be 32 bytes in base64, for example from: openssl rand -base64 32')
      return z.NEVER
    }),
  url: (...protocols: string[]) =>
    z.string().transform((value, context) => {
      const url = URL.canParse(value) ? new URL(value) : undefined
      if (url && protocols.includes(url.protocol)) return value
      context.addIssue(`must be a URL that starts with ${protocols.map((name) => `${name}//`).join(' or ')}`)
      return z.NEVER
    }),
}
