import { isPlainHttp } from '../../platform/http/plain-http.ts'
import { type Invocation, number, UsageError } from './invocation.ts'

export interface ServeOptions {
  /** A folder of rules, a bundle, or the address of one. */
  path: string
  host: string
  port: number
  tokenFile: string | undefined
  /** Files in PEM. */
  tls: { cert: string; key: string } | undefined
  /** Bytes of an input. */
  maxInput: number
  /** Of work, for one evaluation. Default: the engine's. */
  units: number | undefined
  decisionLog: { to: string; masks: readonly string[] } | undefined
}

const defaultAddress = '127.0.0.1:8181'
/** Fits into the room of an evaluation, in which JSON takes 14 times its size; in bytes. */
const defaultMaxInput = 1_048_576

/** Throws `UsageError`, also for an address that others reach where no token is asked for. */
export const serveOptions = ({ path, positionals, values, lists }: Invocation): ServeOptions => {
  const [source, ...others] = positionals
  if (others.length > 0) throw new UsageError('name one folder or bundle')
  const { host, port } = addressOf(values['addr'] ?? defaultAddress)
  const tokenFile = values['token-file']
  if (tokenFile === undefined && isPlainHttp(`http://${urlHost(host)}`)) {
    throw new UsageError(`${values['addr']} is reached from elsewhere: name who may ask with --token-file`)
  }
  const cert = values['tls-cert-file']
  const key = values['tls-private-key-file']
  if ((cert === undefined) !== (key === undefined)) {
    throw new UsageError('--tls-cert-file and --tls-private-key-file belong together')
  }
  const to = values['decision-log']
  const masks = lists['decision-log-mask'] ?? []
  const wrong = masks.find((mask) => !/^\/(?:input|result)\/./.test(mask))
  if (wrong !== undefined) throw new UsageError(`${wrong} is no JSON pointer below /input or /result`)
  if (masks.length > 0 && to === undefined) throw new UsageError('--decision-log-mask belongs to --decision-log')
  return {
    path: source ?? path,
    host,
    port,
    tokenFile,
    tls: cert === undefined || key === undefined ? undefined : { cert, key },
    maxInput: whole(number(values, 'max-input') ?? defaultMaxInput, 'max-input', 16_777_216),
    units: values['units'] === undefined ? undefined : whole(number(values, 'units')!, 'units', 2_000_000_000),
    decisionLog: to === undefined ? undefined : { to, masks },
  }
}

const urlHost = (host: string) => (host.includes(':') ? `[${host}]` : host)

const whole = (value: number, name: string, most: number): number => {
  if (!Number.isInteger(value) || value < 1 || value > most) {
    throw new UsageError(`--${name} must be a whole number from 1 to ${most}`)
  }
  return value
}

/** `host:port`, `[::1]:port`, or `:port` for every address of the machine. */
const addressOf = (text: string): { host: string; port: number } => {
  const parsed = /^(?:\[([0-9a-fA-F:.]+)\]|([\w.-]*)):(\d{1,5})$/.exec(text)
  const port = Number(parsed?.[3])
  if (!parsed || port > 65_535) throw new UsageError(`${text} is no address such as ${defaultAddress}`)
  return { host: (parsed[1] ?? parsed[2]) || '::', port }
}
