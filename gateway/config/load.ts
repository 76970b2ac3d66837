import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Secret } from '../../platform/secret.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { shippedPolicies } from '../../policies/decide.ts'
import { isAddress } from '../../policies/origin.ts'
import { contradictions } from './contradictions.ts'
import { keyMeant, messageOf } from './messages.ts'
import { readablePart } from './readable-part.ts'
import { type Route, routeOf } from './route.ts'
import { type GatewayFile, gatewayFile } from './settings/file.ts'
import type { InspectionSettings } from './settings/inspection.ts'
import type { TlsSettings } from './settings/listen.ts'
import type { LogSettings } from './settings/logs.ts'
import { route as routeEntry } from './settings/route.ts'
import type { UpstreamSettings } from './settings/upstream.ts'
import { isUrl } from './settings/values.ts'
import { shownConfiguration } from './shown-configuration.ts'
import { openYaml, type YamlProblem } from './yaml-file.ts'

/** `gateway.yaml`, read, checked and resolved. */
export interface GatewayConfig extends Omit<GatewayFile, 'routes' | 'policies' | 'inspection'> {
  /** Changes with the text of the file. */
  readonly revision: string
  readonly policies: PolicySettings
  readonly inspection?: Inspection | undefined
  /** The file itself. */
  readonly file: string
  /** Its members with all defaults, made for reading: secrets are `[redacted]`, values of the environment `${NAME}`. */
  readonly shown: () => Record<string, unknown>
  /** Where a member stands, as `file:line:column`; where it is not, what it belongs into. */
  readonly placeOf: (path: readonly PropertyKey[]) => string
  readonly routes: readonly Route[]
}

/** Who may inspect, and where. */
export interface Inspection extends InspectionSettings {
  /** What its requests are authenticated by, as if it were a route of the gateway. */
  readonly route: Route
}

/** Where decisions come from. Paths are absolute; those of policies may also be addresses. Times in ms. */
export interface PolicySettings {
  readonly path: string
  readonly entrypoint: string
  /** For a path that is an address. */
  readonly remote: { poll: number; token?: Secret | undefined; cache?: string | undefined }
  readonly verify?: GatewayFile['policies']['verify']
  readonly shadow?: string
  readonly shadowSample: number
  readonly units: number
  readonly isolation: GatewayFile['policies']['isolation']
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads `gateway.yaml`. `${NAME}` is replaced by the environment's value; paths are relative to the file. Throws
 * `StartupError` with every problem as `file:line:column: message`.
 */
export const loadGatewayConfig = async (file: string, env: Environment): Promise<GatewayConfig> =>
  parseGatewayConfig(await readConfigText(file), { file, env })

const readConfigText = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((cause: unknown) => {
    throw new StartupError(`The gateway's configuration cannot be read: ${file}`, {
      hint: 'Name another file with --config or GATEWAY_CONFIG.',
      cause,
    })
  })

/** A configuration that can be read again. */
export interface GatewaySource {
  /** Looked at for changes. */
  file: string | undefined
  load: () => Promise<GatewayConfig>
}

/** A file whose text can be handed to other processes: they parse what was read here. */
export interface FileSource extends GatewaySource {
  file: string
  env: Environment
  read: () => Promise<string>
}

export const fileSource = (file: string, env: Environment): FileSource => ({
  file,
  env,
  read: () => readConfigText(file),
  load: () => loadGatewayConfig(file, env),
})

/** The same from text; `file` is what problems name and what paths are relative to. */
export const parseGatewayConfig = (text: string, { file, env }: { file: string; env: Environment }): GatewayConfig => {
  const yaml = openYaml(text, env)
  const parsed = gatewayFile.safeParse(yaml.value, { error: messageOf })
  const problems = [...yaml.problems]
  if (!parsed.success) problems.push(...parsed.error.issues.flatMap((issue) => yaml.locateIssue(issue, keyMeant)))
  const readable = parsed.success ? { file: parsed.data, original: samePath } : readablePart(yaml.value, parsed.error)
  if (readable) {
    const found = contradictions(readable.file)
    problems.push(...found.map(({ path, message }) => yaml.locate(readable.original(path), message)))
  }
  if (problems.length > 0 || !parsed.success) throw invalid(file, problems)
  const { policies, inspection, ...rest } = parsed.data
  return {
    ...rest,
    revision: hash('sha256', text).slice(0, 12),
    file,
    shown: () => shownConfiguration(parsed.data, yaml),
    placeOf(path) {
      const { line, column } = yaml.locate(path, '')
      return `${file}:${line}:${column}`
    },
    listen: listenBeside(rest.listen, file),
    ...(rest.extAuthz && { extAuthz: listenBeside(rest.extAuthz, file) }),
    inspection: inspection && { ...listenBeside(inspection, file), route: inspectionRoute(inspection, parsed.data) },
    policies: policySettings(policies, file),
    ...(rest.identity && { identity: { ...rest.identity, keyFile: resolve(dirname(file), rest.identity.keyFile) } }),
    ...(rest.decisionLog && { decisionLog: besideFile(rest.decisionLog, file) }),
    ...(rest.accessLog && { accessLog: besideFile(rest.accessLog, file) }),
    upstreams: Object.fromEntries(
      Object.entries(rest.upstreams).map(([name, settings]) => [name, withTlsFiles(settings, file)]),
    ),
    routes: parsed.data.routes.map((entry) => routeOf(entry, parsed.data)),
  }
}

const samePath = (path: readonly PropertyKey[]) => path

const policySettings = (policies: GatewayFile['policies'], file: string): PolicySettings => {
  const { path, bundle, poll, token, cache, verify, shadow, ...rest } = policies
  const live = bundle ?? path
  const besideFile = (name: string) => resolve(dirname(file), name)
  const place = (name: string) => (isAddress(name) ? name : besideFile(name))
  return {
    ...rest,
    path: live === undefined ? shippedPolicies : place(live),
    remote: { poll, ...(token && { token }), ...(cache !== undefined && { cache: besideFile(cache) }) },
    ...(verify && { verify: { ...verify, keys: verify.keys.map((key) => ({ ...key, file: besideFile(key.file) })) } }),
    ...(shadow !== undefined && { shadow: place(shadow) }),
  }
}

const inspectionRoute = ({ audience, issuers }: InspectionSettings, file: GatewayFile): Route => {
  const entry = { id: 'inspection', path: '/**', audience: [audience], insufficientScopeStatus: 403, issuers }
  // The public listener has no document about it.
  return { ...routeOf(routeEntry.parse(entry), file), resourceMetadata: undefined }
}

/** The files of a listener's certificates. */
const listenBeside = <Listening extends { tls?: TlsSettings | undefined }>(
  listen: Listening,
  file: string,
): Listening => {
  const { tls } = listen
  if (!tls) return listen
  const besideFile = (name: string) => resolve(dirname(file), name)
  const certificates = tls.certificates.map(({ cert, key }) => ({ cert: besideFile(cert), key: besideFile(key) }))
  return {
    ...listen,
    tls: { ...tls, certificates, ...(tls.clientCa !== undefined && { clientCa: besideFile(tls.clientCa) }) },
  }
}

/** A log file is relative to the configuration, like every path in it. */
const besideFile = <Log extends LogSettings>(log: Log, file: string): Log =>
  log.to === 'stdout' || isUrl(log.to) ? log : { ...log, to: resolve(dirname(file), log.to) }

const withTlsFiles = (settings: UpstreamSettings, file: string): UpstreamSettings => {
  const { tls } = settings
  if (!tls) return settings
  const files = (['ca', 'cert', 'key'] as const).flatMap((member) =>
    tls[member] === undefined ? [] : [[member, resolve(dirname(file), tls[member])]],
  )
  return { ...settings, tls: { ...tls, ...Object.fromEntries(files) } }
}

const invalid = (file: string, problems: readonly YamlProblem[]) => {
  const lines = problems
    .toSorted((one, other) => one.line - other.line || one.column - other.column)
    .map(({ line, column, message }) => `  ${file}:${line}:${column}: ${message}`)
  return new StartupError(`The gateway's configuration is not valid:\n${lines.join('\n')}`, {
    hint: 'See docs/operators.md for the format.',
  })
}
