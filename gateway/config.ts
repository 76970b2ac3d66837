import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Secret } from '../platform/secret.ts'
import { StartupError } from '../platform/startup-error.ts'
import { shippedPolicies } from '../policies/decide.ts'
import { isAddress } from '../policies/origin.ts'
import { type GatewayFile, gatewaySchema, type RouteEntry } from './config-schema.ts'
import { createCors } from './cors.ts'
import { insecureSettings } from './insecure-settings.ts'
import { isUrl, type LogSettings } from './log-output.ts'
import { resourceMetadataUrl } from './protected-resource.ts'
import { findConflicts, type PathPattern, parsePattern, type Route } from './routes.ts'
import { openYaml, type YamlProblem } from './yaml-file.ts'

/** `gateway.yaml`, read and checked: what it means rather than what it says. */
export interface GatewayConfig extends Omit<GatewayFile, 'routes' | 'policies'> {
  /** Changes with the text of the file. */
  readonly revision: string
  readonly policies: PolicySettings
  readonly routes: readonly Route[]
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
  readonly isolation: GatewayFile['policies']['isolation']
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads `gateway.yaml`. `${NAME}` is replaced by the environment's value; paths are relative to the file. Throws `StartupError` with every
 * problem as `file:line:column: message`.
 */
export const loadGatewayConfig = async (file: string, env: Environment): Promise<GatewayConfig> => {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new StartupError(`The gateway's configuration cannot be read: ${file}`, {
      hint: 'Name another file with --config or GATEWAY_CONFIG.',
      cause,
    })
  })
  return parseGatewayConfig(text, { file, env })
}

/** A configuration that can be read again. */
export interface GatewaySource {
  /** Looked at for changes. */
  file: string | undefined
  load: () => Promise<GatewayConfig>
}

export const fileSource = (file: string, env: Environment): GatewaySource => ({
  file,
  load: () => loadGatewayConfig(file, env),
})

/** The same from text; `file` is what problems name and what paths are relative to. */
export const parseGatewayConfig = (text: string, { file, env }: { file: string; env: Environment }): GatewayConfig => {
  const yaml = openYaml(text, env)
  const parsed = gatewaySchema.safeParse(yaml.value)
  const problems = [...yaml.problems]
  if (!parsed.success) problems.push(...parsed.error.issues.flatMap(yaml.locateIssue))
  else problems.push(...contradictions(parsed.data).map(({ path, message }) => yaml.locate(path, message)))
  if (problems.length > 0 || !parsed.success) throw invalid(file, problems)
  const { policies, ...rest } = parsed.data
  return {
    ...rest,
    revision: hash('sha256', text).slice(0, 12),
    policies: policySettings(policies, file),
    ...(rest.identity && { identity: { ...rest.identity, keyFile: resolve(dirname(file), rest.identity.keyFile) } }),
    ...(rest.decisionLog && { decisionLog: besideFile(rest.decisionLog, file) }),
    ...(rest.accessLog && { accessLog: besideFile(rest.accessLog, file) }),
    routes: parsed.data.routes.map((entry) => routeOf(entry, parsed.data)),
  }
}

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

/** A log file is relative to the configuration, like every path in it. */
const besideFile = <Log extends LogSettings>(log: Log, file: string): Log =>
  log.to === 'stdout' || isUrl(log.to) ? log : { ...log, to: resolve(dirname(file), log.to) }

const invalid = (file: string, problems: readonly YamlProblem[]) => {
  const lines = problems
    .toSorted((one, other) => one.line - other.line || one.column - other.column)
    .map(({ line, column, message }) => `  ${file}:${line}:${column}: ${message}`)
  return new StartupError(`The gateway's configuration is not valid:\n${lines.join('\n')}`, {
    hint: 'See docs/operators.md for the format.',
  })
}

interface Contradiction {
  path: PropertyKey[]
  message: string
}

/** What no single member shows. */
const contradictions = (file: GatewayFile): Contradiction[] => {
  const found: Contradiction[] = []
  const report = (path: PropertyKey[], message: string) => void found.push({ path, message })
  const { policies, routes, issuers } = file
  if (policies.path !== undefined && policies.bundle !== undefined) {
    report(['policies', 'bundle'], 'name a path or a bundle, not both')
  }
  for (const { path, message } of policyContradictions(policies)) report(['policies', ...path], message)
  found.push(...insecureSettings(file))
  if (file.forwardAuth && file.trustedProxies.length === 0) {
    report(['forwardAuth'], 'needs trustedProxies: only they get decisions')
  }
  for (const [name, { identityAudience }] of Object.entries(file.upstreams)) {
    if (identityAudience !== undefined && !file.identity) {
      report(['upstreams', name, 'identityAudience'], 'needs identity, with the key to sign with')
    }
  }
  for (const [index, { issuer, client, revocations }] of issuers.entries()) {
    if (issuers.findIndex((other) => other.issuer === issuer) < index) {
      report(['issuers', index, 'issuer'], 'this issuer is listed twice')
    }
    if (revocations?.mode === 'feed' && !client) {
      report(['issuers', index, 'revocations'], 'the revocation feed needs a client to read it with')
    }
  }
  for (const [index, entry] of routes.entries()) {
    for (const { path, message } of routeContradictions(entry, file, index)) report(['routes', index, ...path], message)
  }
  if (found.length > 0) return found
  const compiled = routes.map((entry) => routeOf(entry, file))
  for (const { first, second, method } of findConflicts(compiled)) {
    const what = method === '*' ? 'every method' : method
    report(
      ['routes', compiled.indexOf(second), 'path'],
      `the routes ${first.id} and ${second.id} tie: both match ${what} ${second.pattern.text}`,
    )
  }
  return found
}

const policyContradictions = ({
  path,
  bundle,
  token,
  cache,
  verify,
  shadow,
}: GatewayFile['policies']): Contradiction[] => {
  const found: Contradiction[] = []
  const addresses = { bundle, shadow }
  if (path !== undefined && isAddress(path)) found.push({ path: ['path'], message: 'an address is named with bundle' })
  for (const [name, address] of Object.entries(addresses)) {
    if (address === undefined || verify || !isOpen(address)) continue
    found.push({ path: [name], message: 'needs https, or verify: whoever is on the way could replace the rules' })
  }
  for (const [name, value] of Object.entries({ token, cache })) {
    if (value === undefined || Object.values(addresses).some((place) => place !== undefined && isAddress(place)))
      continue
    found.push({ path: [name], message: 'needs a bundle that is an address' })
  }
  if (verify && bundle === undefined)
    found.push({ path: ['verify'], message: 'needs a bundle; a folder of rules is not signed' })
  return found
}

/** An address that is asked without TLS, across a network. */
const isOpen = (address: string): boolean =>
  isAddress(address) &&
  URL.canParse(address) &&
  new URL(address).protocol === 'http:' &&
  !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(address).hostname)

const routeContradictions = (entry: RouteEntry, file: GatewayFile, index: number): Contradiction[] => {
  const found: Contradiction[] = []
  if (file.routes.findIndex((other) => other.id === entry.id) < index) {
    found.push({ path: ['id'], message: `the id ${entry.id} is used twice` })
  }
  if (entry.upstream === '') {
    if (!file.forwardAuth) found.push({ path: ['id'], message: 'upstream is needed, unless forwardAuth is set' })
  } else if (!Object.hasOwn(file.upstreams, entry.upstream)) {
    found.push({ path: ['upstream'], message: `there is no upstream ${entry.upstream}` })
  }
  if (entry.auth === 'required' && entry.audience.length === 0) {
    found.push({ path: ['id'], message: 'audience is needed with auth: required' })
  }
  if (entry.auth === 'required' && file.issuers.length === 0) {
    found.push({ path: ['id'], message: 'auth: required needs an issuer' })
  }
  if (entry.auth === 'none' && entry.scopes.length > 0) {
    found.push({ path: ['scopes'], message: 'scopes cannot be required with auth: none' })
  }
  if (entry.acceptPersonalAccessTokens && entry.auth === 'none') {
    found.push({ path: ['acceptPersonalAccessTokens'], message: 'a route with auth: none takes no token' })
  }
  if (entry.acceptPersonalAccessTokens && !file.issuers.some(({ client }) => client)) {
    found.push({ path: ['acceptPersonalAccessTokens'], message: 'needs an issuer with a client to exchange them with' })
  }
  if (entry.cors?.credentials && entry.cors.origins.includes('*')) {
    found.push({ path: ['cors', 'credentials'], message: 'credentials for pages of any origin: name the origins' })
  }
  const limits = entry.rateLimit.map(({ name }) => name)
  if (new Set(limits).size < limits.length) {
    found.push({ path: ['rateLimit'], message: 'two limits have the same name: give each one of its own' })
  }
  if (entry.auth === 'none' && entry.rateLimit.some(({ by }) => by !== 'address')) {
    found.push({ path: ['rateLimit'], message: 'a route with auth: none can only be limited by address' })
  }
  if (entry.websocket && entry.methods.length > 0 && !entry.methods.includes('GET')) {
    found.push({ path: ['websocket'], message: 'a WebSocket is opened with GET, which is not among the methods' })
  }
  const pattern = parsePattern(entry.path)
  if (typeof pattern === 'string') found.push({ path: ['path'], message: `the path ${pattern}` })
  else if (strippedSegments(entry.stripPrefix, pattern) === undefined) {
    found.push({ path: ['stripPrefix'], message: 'must be the literal beginning of the path, in whole segments' })
  }
  return found
}

/** How many segments `stripPrefix` is; undefined when it is no literal beginning of the pattern. */
const strippedSegments = (prefix: string | null, { segments }: PathPattern): number | undefined => {
  if (prefix === null || prefix === '' || prefix === '/') return 0
  if (!prefix.startsWith('/')) return undefined
  const parts = prefix.replace(/\/$/, '').slice(1).split('/')
  return parts.every((part, index) => part !== '' && segments[index] === part) ? parts.length : undefined
}

const routeOf = (entry: RouteEntry, { policies, limits, resourceMetadata }: GatewayFile): Route => {
  const { path, stripPrefix, entrypoint = policies.entrypoint, bodySize = limits.bodySize, ...others } = entry
  const { cors, rateLimit: rateLimits, ...rest } = others
  const pattern = parsePattern(path) as PathPattern
  return {
    ...rest,
    pattern,
    entrypoint,
    bodySize,
    cors: cors && createCors(cors, entry.methods),
    rateLimits,
    stripSegments: strippedSegments(stripPrefix, pattern)!,
    resourceMetadata: resourceMetadata ? resourceMetadataUrl(entry) : undefined,
  }
}
