import type { Query } from '../../platform/database/database.ts'
import { type Logger, throttledLevel } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { OAuthError } from '../base/errors/problems.ts'
import { type ScriptedToken, scriptInput } from './claims-context.ts'
import { checkResult } from './claims-result.ts'
import type { ScriptKind } from './claims-script.ts'
import type { ClaimsScriptStore, ScriptVersions, StoredScript } from './claims-script-store.ts'
import { findContextFacts } from './context-store.ts'
import type { ScriptFailure } from './sandbox/messages.ts'
import { redactor } from './sandbox/redact.ts'
import type { ClaimsSandbox } from './sandbox/sandbox.ts'

/**
 * Custom claims of access tokens. Asked before anything is used up, so that a token that its script refuses costs
 * nobody anything.
 */
export interface CustomClaims {
  /**
   * The claims that the script adds; undefined when there is none for such tokens, which costs nothing. Throws
   * `access_denied` when it refuses the token, `invalid_request` when it fails and the token must not be issued without
   * it, 503 when it cannot be run now.
   */
  of(versions: ScriptVersions, token: () => ScriptedToken): Promise<ScriptClaims> | undefined
}

export type ScriptClaims = Readonly<Record<string, unknown>>

export interface CustomClaimsDependencies {
  database: { query: Query }
  store: Pick<ClaimsScriptStore, 'find'>
  sandbox: Pick<ClaimsSandbox, 'run'>
  logger: Logger
  metrics: Metrics
}

/** A script is handed this much at most, in characters of JSON: what does not fit is told, never cut. */
const maxInputLength = 524_288

/** Failures that are not of the script's making: the client may try again. */
const passing: ReadonlySet<ScriptFailure> = new Set(['busy', 'stopped'])

export const createCustomClaims = (dependencies: CustomClaimsDependencies): CustomClaims => {
  const { database, store, sandbox, logger, metrics } = dependencies
  const levelFor = (what: string) => throttledLevel(logger, 'warn', `claims ${what}`)
  const counter = metrics.counter('surrogate_claims_scripts_total', 'Calls of custom claims scripts by outcome.', [
    'token_type',
    'outcome',
  ])
  const duration = metrics.histogram(
    'surrogate_claims_script_seconds',
    'From asking for custom claims to having them.',
    [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    ['token_type'],
  )
  // By version: whoever asks knows which one the database holds by the same statement that looks the client up.
  const known = new Map<ScriptKind, { version: string; script: Promise<StoredScript | undefined> }>()

  const scriptOf = (kind: ScriptKind, version: string): Promise<StoredScript | undefined> => {
    const found = known.get(kind)
    if (found?.version === version) return found.script
    const script = store.find(database.query, kind)
    const entry = { version, script }
    known.set(kind, entry)
    script.catch(() => {
      if (known.get(kind) === entry) known.delete(kind)
    })
    return script
  }

  const ask = async (kind: ScriptKind, version: string, token: ScriptedToken): Promise<ScriptClaims> => {
    const started = performance.now()
    const question = {
      userId: kind === 'access-token' ? token.sub : undefined,
      clientId: token.clientId,
      organizationId: token.organizationId,
    }
    const [script, facts] = await Promise.all([scriptOf(kind, version), findContextFacts(database.query, question)])
    // Deleted since.
    if (!script) return {}
    const { environmentVariables = {}, blockIssuanceOnError } = script
    const told = { tokenType: kind, clientId: token.clientId, tokenId: token.jti }

    const failed = (failure: ScriptFailure | 'input', message: string): ScriptClaims => {
      counter.inc({ token_type: kind, outcome: failure })
      const entry = { ...told, failure, reason: message, blocked: blockIssuanceOnError }
      logger[levelFor(`${kind} ${token.clientId} ${failure}`)](entry, 'a custom claims script failed')
      if (!blockIssuanceOnError) return {}
      throw passing.has(failure as ScriptFailure) ? unavailable() : broken()
    }

    const input = scriptInput(token, facts)
    if (!input) return failed('input', 'The user or the application is there no more.')
    const text = JSON.stringify(input)
    if (text.length > maxInputLength)
      return failed('input', `What it would be given exceeds ${maxInputLength} characters.`)
    const call = { script: script.script, input: text, environmentVariables, owner: token.clientId }
    const { outcome, logs } = await sandbox.run(call)
    duration.observe({ token_type: kind }, (performance.now() - started) / 1000)
    if (logs.length > 0) logger.debug({ ...told, logs }, 'a custom claims script wrote to its console')
    if ('failed' in outcome) return failed(outcome.failed, outcome.message)
    if ('denied' in outcome) {
      counter.inc({ token_type: kind, outcome: 'denied' })
      throw denied(outcome.denied)
    }
    const checked = checkResult(outcome.returned)
    if ('wrong' in checked) return failed('result', checked.wrong)
    counter.inc({ token_type: kind, outcome: 'added' })
    if (checked.dropped.length > 0) {
      const redact = redactor(environmentVariables)
      const entry = { ...told, dropped: checked.dropped.map(redact) }
      logger[levelFor(`${kind} dropped`)](entry, 'a custom claims script returned reserved claims')
    }
    return checked.claims
  }

  return {
    of(versions, token) {
      if (versions === undefined) return undefined
      const asked = token()
      const version = versions[asked.kind]
      return version === undefined ? undefined : ask(asked.kind, version, asked)
    },
  }
}

const denied = (message: string) =>
  new OAuthError('access_denied', message === '' ? 'The request was refused.' : message, { reason: 'custom_claims' })

// The script's own message may hold what is not the client's business: the log has it.
const broken = () =>
  new OAuthError('invalid_request', 'The custom claims of this token could not be made.', {
    reason: 'custom_claims_failed',
  })

const unavailable = () =>
  new OAuthError('temporarily_unavailable', 'The custom claims of this token cannot be made now.', {
    reason: 'custom_claims_unavailable',
    headers: { 'Retry-After': '1' },
  })
