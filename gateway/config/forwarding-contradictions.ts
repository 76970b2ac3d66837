import type { PathPattern } from '../routing/path-pattern.ts'
import type { Contradiction } from './contradictions.ts'
import { strippedSegments } from './route.ts'
import type { GatewayFile } from './settings/file.ts'
import type { RouteEntry } from './settings/route.ts'
import { targetsOf } from './settings/targets.ts'

/** Mistakes in what a route says about forwarding. */
export const forwardingContradictions = (
  entry: RouteEntry,
  file: GatewayFile,
  pattern: PathPattern,
): Contradiction[] => [
  ...withoutUpstream(entry),
  ...prefixContradictions(entry, pattern),
  ...labelContradictions(entry, file),
  ...corsContradictions(entry),
  ...bodyContradictions(entry, file),
]

/** Settings that another proxy, which forwards the requests itself, would never see. */
const withoutUpstream = (entry: RouteEntry): Contradiction[] =>
  entry.upstream !== ''
    ? []
    : (['rewrite', 'timeout', 'retries', 'targets', 'responseHeaders'] as const).flatMap((member) =>
        entry[member] === undefined ? [] : [{ path: [member], message: 'needs an upstream' }],
      )

/** A body that never comes: rules would take that for a request without one. */
const bodyContradictions = ({ policyBody, upstream, websocket }: RouteEntry, file: GatewayFile): Contradiction[] => {
  if (!policyBody) return []
  if (websocket) return [{ path: ['policyBody'], message: 'a request that opens a WebSocket has no body' }]
  // Envoy brings bodies along where ext_authz is asked.
  const brought = 'extAuthz' in file && file.extAuthz !== undefined
  const message = 'needs an upstream: forward-auth is asked about requests without their bodies'
  return upstream === '' && !brought ? [{ path: ['policyBody'], message }] : []
}

const prefixContradictions = ({ stripPrefix, rewrite }: RouteEntry, pattern: PathPattern): Contradiction[] => {
  const message = 'must be the literal beginning of the path, in whole segments'
  if (!rewrite) return strippedSegments(stripPrefix, pattern) === undefined ? [{ path: ['stripPrefix'], message }] : []
  if (stripPrefix !== null) return [{ path: ['rewrite'], message: 'name stripPrefix or rewrite, not both' }]
  const { from } = rewrite.prefix
  return from === '' || strippedSegments(from, pattern) === undefined
    ? [{ path: ['rewrite', 'prefix', 'from'], message }]
    : []
}

/** Labels that no target has would refuse every request that asks for them. */
const labelContradictions = ({ targets, upstream }: RouteEntry, { upstreams }: GatewayFile): Contradiction[] => {
  const settings = upstreams[upstream]
  if (!targets || !settings) return []
  const wanted = Object.entries(targets.labels)
  if (targetsOf(settings).some(({ labels }) => wanted.every(([name, value]) => labels[name] === value))) return []
  return [{ path: ['targets', 'labels'], message: `no target of the upstream ${upstream} has these labels` }]
}

const corsContradictions = ({ cors, responseHeaders }: RouteEntry): Contradiction[] => {
  if (!cors || !responseHeaders) return []
  return Object.keys(responseHeaders.set).flatMap((name) =>
    name.startsWith('access-control-')
      ? [{ path: ['responseHeaders', 'set', name], message: 'is said by cors of this route' }]
      : [],
  )
}
