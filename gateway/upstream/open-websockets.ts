import type { Clock } from '../../platform/clock.ts'
import type { VerificationKey } from '../../platform/jwt/keys.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { AppError } from '../../platform/problem.ts'
import type { TrustedIssuer } from '../caller/authenticate.ts'
import type { Introspection } from '../caller/introspection.ts'
import type { Revocations } from '../caller/revocations.ts'
import type { Principal } from '../request/principal.ts'
import type { ReadRequest } from '../request/request-context.ts'
import type { Upstream } from './upstream.ts'
import type { WebSocketBridge } from './websocket-bridge.ts'
import type { CloseReason } from './websocket-frames.ts'

/** The WebSockets that are open now. Token, key and revocations are checked again while they are open. */
export interface OpenWebSockets {
  /** Counts it with its upstream until the bridge closes; false when the upstream has `maxWebSockets`. */
  reserve(bridge: WebSocketBridge, upstream: Upstream): boolean
  /** Watches over one that is open now, until the bridge closes. */
  add(bridge: WebSocketBridge, context: ReadRequest, upstream: Upstream): void
  /** Ends all of them, and every later one at once. */
  drain(): void
  close(): void
}

interface Open {
  bridge: WebSocketBridge
  upstream: Upstream
  context: ReadRequest
  principal: Principal | undefined
  /** Of an opaque token. */
  asking: boolean
  /** The key that its token was verified with; undefined = it has no token, or an opaque one. */
  key: VerificationKey | undefined
  kid: string
}

/** How often tokens, revocations and silence are checked, in ms. Revocations are checked when they arrive, too. */
const checkInterval = 1_000
/** About opaque tokens, under way at once: the others come with the next check. */
const mostQuestions = 200

const reasons = {
  drain: { code: 1001, reason: 'the gateway is going away' },
  idle: { code: 1001, reason: 'nothing was sent for too long' },
  expired: { code: 1008, reason: 'the token has expired' },
  inactive: { code: 1008, reason: 'the token is not active any more' },
  revoked: { code: 1008, reason: 'the token was revoked' },
  keyGone: { code: 1008, reason: 'the key of the token was withdrawn' },
  unknown: { code: 1013, reason: 'it cannot be known whether the token was revoked' },
} as const satisfies Record<string, CloseReason>

export const createOpenWebSockets = (parts: {
  issuers: readonly TrustedIssuer[]
  revocations: readonly Revocations[]
  introspections: ReadonlyMap<string, Introspection>
  metrics: Metrics
  now: Clock
}): OpenWebSockets => {
  const { introspections, metrics, now } = parts
  const ended = metrics.counter('surrogate_gateway_websockets_ended_total', 'WebSockets that the gateway ended', [
    'reason',
  ])
  const gauge = metrics.gauge('surrogate_gateway_websockets', 'Open WebSockets')
  const issuers = new Map(parts.issuers.map((issuer) => [issuer.issuer, issuer]))
  const followed = new Map(parts.revocations.map((one) => [one.issuer, one]))
  const all = new Set<Open>()
  const counts = new Map<Upstream, number>()
  let timer: NodeJS.Timeout | undefined
  let draining = false
  let asking = 0

  const end = ({ bridge }: Open, reason: keyof typeof reasons) => {
    ended.inc({ reason })
    bridge.close(reasons[reason])
  }

  /** Undefined: it may stay open. */
  const overdue = (open: Open): keyof typeof reasons | undefined => {
    const { bridge, principal, upstream } = open
    const { webSocketIdleTimeout: idle } = upstream
    if (idle > 0 && performance.now() - bridge.lastMoved >= idle) return 'idle'
    if (!principal) return undefined
    const gone = principal.askAgainAt === undefined ? signatureGone(open, principal) : undefined
    if (gone) return gone
    try {
      followed.get(principal.claims.iss)?.check(principal.claims)
    } catch (error) {
      return error instanceof AppError && error.status === 401 ? 'revoked' : 'unknown'
    }
    return undefined
  }

  const signatureGone = ({ key, kid }: Open, { claims }: Principal): keyof typeof reasons | undefined => {
    if (now().getTime() >= claims.exp * 1000) return 'expired'
    const issuer = issuers.get(claims.iss)
    if (!issuer?.keys.usable()) return 'unknown'
    return issuer.keys.peek(kid) === key ? undefined : 'keyGone'
  }

  /** An opaque token may be active longer than was known when it was asked about: only its issuer can tell. */
  const askAgain = async (open: Open, { claims }: Principal): Promise<void> => {
    open.asking = true
    asking++
    try {
      open.principal = await introspections.get(claims.iss)!.principal(tokenOf(open.context))
    } catch (error) {
      if (all.delete(open)) end(open, error instanceof AppError && error.status === 401 ? 'inactive' : 'unknown')
    } finally {
      open.asking = false
      asking--
    }
  }

  const check = () => {
    for (const open of all) {
      const reason = overdue(open)
      if (reason) {
        all.delete(open)
        end(open, reason)
        continue
      }
      const { principal } = open
      if (principal?.askAgainAt === undefined || now().getTime() < principal.askAgainAt) continue
      if (!open.asking && asking < mostQuestions) void askAgain(open, principal)
    }
  }
  const removeListeners = parts.revocations.map((one) => one.onUpdate(check))

  // The gauge is shared by all configurations that run: each adds its own WebSockets.
  let shown = 0
  const stopCounting = metrics.onCollect(() => {
    gauge.inc(all.size - shown)
    shown = all.size
  })

  return {
    reserve(bridge, upstream) {
      const count = counts.get(upstream) ?? 0
      if (draining || count >= upstream.maxWebSockets) return false
      counts.set(upstream, count + 1)
      bridge.once('close', () => counts.set(upstream, (counts.get(upstream) ?? 1) - 1))
      return true
    },
    add(bridge, context, upstream) {
      const { principal } = context
      const signed = principal !== undefined && principal.askAgainAt === undefined
      const kid = signed ? kidOf(context) : ''
      const key = signed ? issuers.get(principal.claims.iss)?.keys.peek(kid) : undefined
      const open: Open = { bridge, upstream, context, principal, asking: false, key, kid }
      bridge.once('close', () => {
        all.delete(open)
        if (all.size === 0) {
          clearInterval(timer)
          timer = undefined
        }
      })
      if (draining) return end(open, 'drain')
      all.add(open)
      timer ??= setInterval(check, checkInterval).unref()
    },
    drain() {
      draining = true
      for (const open of all) end(open, 'drain')
      all.clear()
    },
    close() {
      clearInterval(timer)
      for (const remove of removeListeners) remove()
      stopCounting()
      gauge.dec(shown)
    },
  }
}

const tokenOf = ({ headers: { authorization = '' } }: ReadRequest): string =>
  authorization.slice(authorization.indexOf(' ')).trim()

/** Of the token that was verified a moment ago. */
const kidOf = (context: ReadRequest): string => {
  const token = tokenOf(context)
  const header = JSON.parse(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString()) as { kid: string }
  return header.kid
}
