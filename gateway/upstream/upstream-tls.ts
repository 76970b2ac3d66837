import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { sha256 } from '../../platform/secret.ts'
import { StartupError } from '../../platform/startup-error.ts'
import type { TlsSettings, UpstreamSettings } from '../config/settings/upstream.ts'

/** What `tls.connect` is given for an upstream: PEM texts, and the name that its certificate must have. */
export interface UpstreamTls {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
}

/** Changes with what the files hold, and says nothing about it. */
export const digestOf = (tls: UpstreamTls | undefined): string | undefined =>
  tls && sha256(JSON.stringify(tls)).toString('base64')

/** The files of all upstreams, for whoever follows them. */
export const tlsFiles = (upstreams: Readonly<Record<string, UpstreamSettings>>): string[] =>
  Object.values(upstreams).flatMap(({ tls }) =>
    [tls?.ca, tls?.cert, tls?.key].flatMap((file) => (file === undefined ? [] : [file])),
  )

/** By upstream, of those that have `tls`. Throws `StartupError` for files that cannot be read or used. */
export const readUpstreamsTls = async (
  upstreams: Readonly<Record<string, UpstreamSettings>>,
): Promise<ReadonlyMap<string, UpstreamTls>> => {
  const entries = await Promise.all(
    Object.entries(upstreams).map(async ([name, { tls }]) =>
      tls ? [[name, await readUpstreamTls(name, tls)] as const] : [],
    ),
  )
  return new Map(entries.flat())
}

const readUpstreamTls = async (upstream: string, { ca, cert, key, serverName }: TlsSettings): Promise<UpstreamTls> => {
  const read = async (member: string, file: string | undefined): Promise<Record<string, string>> => {
    if (file === undefined) return {}
    const text = await readFile(file, 'utf8').catch((cause: unknown) => {
      throw new StartupError(`A file of the upstream ${upstream} cannot be read: ${file}`, {
        hint: `Name another file with upstreams.${upstream}.tls.${member}.`,
        cause,
      })
    })
    return { [member]: text }
  }
  const parts = await Promise.all([read('ca', ca), read('cert', cert), read('key', key)])
  const tls: UpstreamTls = Object.assign({}, ...parts, serverName !== undefined && { servername: serverName })
  for (const member of ['ca', 'cert'] as const) {
    check(upstream, member, () => tls[member] !== undefined && new X509Certificate(tls[member]))
  }
  check(upstream, 'key', () => createSecureContext(tls))
  return tls
}

const hints = {
  ca: 'It holds PEM certificates of authorities, the first one first.',
  cert: "It holds the gateway's certificate as PEM, then those between it and the authority.",
  key: 'It holds the private key of tls.cert as PEM, without a passphrase.',
}

const check = (upstream: string, member: keyof typeof hints, attempt: () => unknown): void => {
  try {
    attempt()
  } catch {
    throw new StartupError(`upstreams.${upstream}.tls.${member} is not usable.`, { hint: hints[member] })
  }
}

/**
 * RFC 6066 §3: the name of a server is sent without the dot that keeps search domains out.
 *
 * @param host With or without a port.
 */
export const withoutFinalDot = (host: string): string => host.replace(/\.(?=:\d+$|$)/, '')
