import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse as parseYaml } from 'yaml'
import { z } from 'zod'
import { type Decision, decide, defaultEntrypoint, type PolicyInput, principalInput } from '../decide.ts'
import { defaultUnits, PolicyError, UnitsUsedUp } from '../engine/index.ts'
import { foldedPath, pathEqualitySchema } from '../path-equality.ts'
import type { PolicySet } from '../policy-set.ts'

/**
 * Policy tests in the words of HTTP: a request, the claims of its token, the route it meets, the answer expected. YAML
 * lists in a folder, run by `surrogate policy test`. `resolve` is the seam to a gateway's own routes; without it every
 * case describes its route.
 * @param options.set remembers no answers, and lets evaluations spend as many units as any case may.
 */
export const runCases = (options: {
  cases: readonly PolicyCase[]
  set: PolicySet
  resolve?: ResolveCase
}): CaseResult[] =>
  options.cases.map((testCase) => {
    const start = performance.now()
    const { units, ...actual } = outcome(options.set, options.resolve ?? resolveByOwnRoute, testCase)
    const mismatches = Object.entries(testCase.expect).flatMap(([name, expected]) => {
      const found = actual[name as keyof Outcome]
      return same(expected, found) ? [] : [`${name}: expected ${show(expected)}, got ${show(found)}`]
    })
    if (mismatches.length > 0 && actual.error !== undefined) mismatches.push(actual.error)
    const milliseconds = performance.now() - start
    return { name: testCase.name, file: testCase.file, mismatches, milliseconds, ...(units && { units }) }
  })

export interface CaseResult {
  name: string
  file: string
  /** Empty when the case passed. */
  mismatches: string[]
  milliseconds: number
  /** Of work, of the evaluation: absent where no rule was asked. */
  units?: { taken: number; given: number }
}

/** What the gateway would do before it asks the policy: an input for it, or an answer already. */
export type ResolveCase = (testCase: PolicyCase) => CaseQuestion | { answer: Outcome }

export interface CaseQuestion {
  input: PolicyInput
  entrypoint: string
  /** Of a missing scope. Default 401. */
  insufficientScopeStatus?: 401 | 403
  /** What the evaluation may spend. Default 5 000 000. */
  units?: number
}

export interface Outcome {
  status: number
  reason?: string
  detail?: string
  scope?: string[]
  headers?: Record<string, string>
  error?: string
}

const oneOrMany = z.union([z.string().transform((value) => [value]), z.array(z.string())])

const caseSchema = z.strictObject({
  name: z.string().min(1),
  request: z.strictObject({
    method: z.string().default('GET'),
    path: z.string().startsWith('/').describe('With the query, if any.'),
    scheme: z.enum(['http', 'https']).default('https'),
    host: z.string().default('api.example.test'),
    headers: z.record(z.string(), oneOrMany).default({}),
    clientIp: z.string().default('203.0.113.9'),
    body: z.unknown().optional().describe('The JSON that is sent, as the policy sees it.'),
  }),
  token: z.record(z.string(), z.unknown()).optional().describe('Claims; iss, aud, iat and exp have defaults.'),
  route: z
    .strictObject({
      id: z.string().default('route'),
      auth: z.enum(['required', 'none']).default('required'),
      params: z.record(z.string(), z.string()).default({}),
      scopes: z.array(z.string()).default([]),
      audience: z.array(z.string()).default(['https://api.example.test']),
      impersonation: z.enum(['allow', 'read-only', 'deny']).default('allow'),
      policyHeaders: z.array(z.string()).default([]),
      context: z.record(z.string(), z.unknown()).default({}),
      entrypoint: z.string().default(defaultEntrypoint),
      insufficientScopeStatus: z.union([z.literal(401), z.literal(403)]).default(401),
      pathEquality: pathEqualitySchema.prefault({}).describe("Of the route's upstream."),
    })
    .optional(),
  /** Seconds since 1970. */
  now: z.number().default(1_767_225_600),
  expect: z.strictObject({
    status: z.number().int(),
    reason: z.string().optional(),
    detail: z.string().optional(),
    scope: z.array(z.string()).optional(),
    headers: z.record(z.string(), z.string()).optional().describe('For the upstream; all of them.'),
  }),
})

export type PolicyCase = z.infer<typeof caseSchema> & { file: string }

/**
 * Reads every `.yaml` and `.yml` of a folder, in order of their names. Throws `PolicyError` naming file, case and
 * member.
 */
export const readCases = async (folder: string): Promise<PolicyCase[]> => {
  const names = await readdir(folder).catch((cause: unknown) => {
    throw new PolicyError(`there are no cases at ${folder}`, { cause })
  })
  const cases: PolicyCase[] = []
  for (const file of names.filter((name) => /\.ya?ml$/.test(name)).sort()) {
    const parsed = z.array(caseSchema).safeParse(parseFile(file, await readFile(join(folder, file), 'utf8')))
    if (!parsed.success) {
      const issues = parsed.error.issues.map(({ path, message }) => ({
        file,
        message: `${path.join('.')}: ${message}`,
      }))
      throw new PolicyError(`${file} is not a list of cases`, { issues })
    }
    cases.push(...parsed.data.map((testCase) => ({ ...testCase, file })))
  }
  return cases
}

const parseFile = (file: string, text: string): unknown => {
  try {
    // `<<: *route` lets cases share a route.
    return parseYaml(text, { merge: true })
  } catch (error) {
    throw new PolicyError(`${file} is not valid YAML: ${(error as Error).message.split('\n', 1)[0]}`, { cause: error })
  }
}

const outcome = (set: PolicySet, resolve: ResolveCase, testCase: PolicyCase): Outcome & Pick<CaseResult, 'units'> => {
  const resolved = resolve(testCase)
  if ('answer' in resolved) return resolved.answer
  const { entrypoint, input, insufficientScopeStatus = 401, units: given = defaultUnits } = resolved
  const answer = answerTo(decide(set, entrypoint, input), insufficientScopeStatus)
  const taken = set.unitsTaken?.() ?? 0
  const error = new UnitsUsedUp(given).message
  return { ...(taken > given ? { status: 403, reason: 'policy_error', error } : answer), units: { taken, given } }
}

const answerTo = (decision: Decision, insufficientScopeStatus: number): Outcome => {
  if (decision.allow) return { status: 200, headers: decision.headers }
  const { allow: _allow, log: _log, ...rest } = decision
  return { status: decision.reason === 'insufficient_scope' ? insufficientScopeStatus : 403, ...rest }
}

/** The case describes its route itself. */
export const resolveByOwnRoute: ResolveCase = ({ file, name, request, route, token, now }) => {
  if (!route) throw new PolicyError(`${file}: "${name}" says no route`)
  if (route.auth === 'required' && !token) return { answer: { status: 401, reason: 'token_missing' } }
  const [path = '/', query = ''] = request.path.split('?', 2)
  const segments = path.split('/').slice(1)
  const claims = { iss: 'https://issuer.example.test', aud: route.audience, iat: now, exp: now + 300, ...token }
  return {
    entrypoint: route.entrypoint,
    insufficientScopeStatus: route.insufficientScopeStatus,
    input: {
      version: 1,
      request: {
        id: 'case',
        method: request.method,
        scheme: request.scheme,
        host: request.host,
        path,
        segments,
        folded: foldedPath({ path, segments }, route.pathEquality),
        query: queryLists(query),
        headers: headersForPolicy(request.headers, route.policyHeaders),
        clientIp: request.clientIp,
        ...(request.body !== undefined && { body: request.body }),
      },
      route: {
        id: route.id,
        params: route.params,
        scopes: route.scopes,
        audience: route.audience,
        impersonation: route.impersonation,
        context: route.context,
      },
      ...(route.auth === 'required' && principalInput(claims)),
      now,
    },
  }
}

const queryLists = (query: string): Record<string, string[]> => {
  const lists = new Map<string, string[]>()
  for (const [name, value] of new URLSearchParams(query)) lists.set(name, [...(lists.get(name) ?? []), value])
  return Object.fromEntries(lists)
}

/** Those that the route lists, by their lower-case names. */
export const headersForPolicy = (
  headers: Record<string, string[]>,
  names: readonly string[],
): Record<string, string[]> => {
  const wanted = new Set(names.map((name) => name.toLowerCase()))
  return Object.fromEntries(
    Object.entries(headers)
      .map(([name, values]) => [name.toLowerCase(), values] as const)
      .filter(([name]) => wanted.has(name)),
  )
}

const show = (value: unknown): string => (value === undefined ? 'none' : JSON.stringify(value))
const sorted = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value).sort() : value
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a, sorted) === JSON.stringify(b, sorted)
