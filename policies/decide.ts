import { z } from 'zod'
import { depthOf } from '../platform/validate.ts'
import { isPermittedHeader } from './decision-headers.ts'
import { PolicyBusy, PolicyError } from './engine/index.ts'
import type { PolicyInput } from './input.ts'
import type { PolicySet } from './policy-set.ts'

export { PolicyBusy, PolicyError } from './engine/index.ts'
export { type PolicyInput, policyInputSchema, principalInput } from './input.ts'
export { loadPolicies, type PolicySet, type PolicySource, shippedPolicies } from './policy-set.ts'
export { type WatchedPolicies, watchPolicies } from './watch.ts'

/** The entrypoint of routes that name none. */
export const defaultEntrypoint = 'surrogate/gateway/decision'

export type Decision =
  | {
      allow: true
      /** For the upstream request; lower-case names, none that identifies, frames, routes or authenticates it. */
      headers: Record<string, string>
      log?: unknown
    }
  | {
      allow: false
      /**
       * `insufficient_scope` → 401 with the challenge, everything else 403. `policy_denied` when the policy gave none.
       */
      reason: string
      /** At most 256 characters, written by the policy's author for the caller. */
      detail?: string
      /** The scopes that would be needed, for the challenge. */
      scope?: string[]
      headers: Record<string, string>
      log?: unknown
      /** With `policy_error`: what went wrong. For the log, never for the caller. */
      error?: string
    }

/**
 * Asks a policy. Never throws and fails closed: anything but `true` or a decision of the form below, an error, or a
 * result over 64 kB is `{allow: false, reason: 'policy_error'}`.
 */
export const decide = (set: PolicySet, entrypoint: string, input: PolicyInput): Decision => {
  try {
    return decisionOf(set.evaluate(entrypoint, input))
  } catch (error) {
    return policyError(error instanceof PolicyError ? describe(error) : 'the policy could not be evaluated')
  }
}

/**
 * The same in a thread of its own, where rules that run away end at a deadline: that is a `policy_error` too. Rejects
 * only with `PolicyBusy`, when no thread came free: then nothing was decided.
 */
export const decideIsolated = async (set: PolicySet, entrypoint: string, input: PolicyInput): Promise<Decision> => {
  if (!set.isolated) return policyError('these policies were not loaded with isolation')
  try {
    return decisionOf(await set.isolated.evaluate(entrypoint, input))
  } catch (error) {
    if (error instanceof PolicyBusy) throw error
    return policyError(error instanceof PolicyError ? describe(error) : 'the policy could not be evaluated')
  }
}

/** The engine's own error is the cause: "unreachable" or the message of OPA's abort. */
const describe = (error: PolicyError): string =>
  error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message

const policyError = (error: string): Decision => ({ allow: false, reason: 'policy_error', headers: {}, error })

const deepestLog = 32

const characters = (text: string): number => [...text].length

/** What a rule may return, apart from a bare `true`. Strict: a misspelt member must not silently do nothing. */
const decisionSchema = z.strictObject({
  allow: z.boolean(),
  reason: z
    .string()
    .regex(/^[A-Za-z0-9_.:-]{1,64}$/)
    .optional(),
  detail: z
    .string()
    .refine((text) => text.length <= 256 || characters(text) <= 256, 'at most 256 characters')
    .optional(),
  // The characters of a scope name: RFC 6749 §3.3. The list goes into a response header.
  scope: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/))
    .max(64)
    .optional(),
  headers: z
    .record(z.string(), z.string())
    .refine((headers) => Object.keys(headers).length <= 32, 'at most 32 headers')
    .refine((headers) => Object.entries(headers).every(isPermittedHeader), 'a header that a policy may not set')
    .refine((headers) => Object.keys(headers).length === Object.keys(lowerCased(headers)).length, 'a header set twice')
    .optional(),
  // Whoever writes the log recurses: a text that a caller sent, parsed by a rule, must not overflow its stack.
  log: z
    .record(z.string(), z.unknown())
    .refine((log) => depthOf(log) <= deepestLog, `at most ${deepestLog} levels deep`)
    .optional(),
})

/** What the value of an entrypoint means, as `decide` reads it. */
export const decisionOf = (result: unknown): Decision => {
  if (isBareAllow(result)) return { allow: true, headers: {} }
  if (result === undefined) return policyError('no rule gave a decision')
  const parsed = decisionSchema.safeParse(result)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    return policyError(
      `the decision is not valid: ${[issue?.path.join('.'), issue?.message].filter(Boolean).join(': ')}`,
    )
  }
  const { allow, reason = 'policy_denied', detail, scope, headers = {}, log } = parsed.data
  const common = { headers: lowerCased(headers), ...(log !== undefined && { log }) }
  if (allow) return { allow, ...common }
  return { allow, reason, ...(detail !== undefined && { detail }), ...(scope && { scope }), ...common }
}

/** `true` or `{"allow": true}`: nearly every answer, and nothing in it to look at any closer. */
const isBareAllow = (result: unknown): boolean =>
  result === true ||
  (typeof result === 'object' &&
    result !== null &&
    (result as { allow?: unknown }).allow === true &&
    Object.keys(result).length === 1)

const lowerCased = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
