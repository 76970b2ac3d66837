import { z } from 'zod'
import { explainedRule } from './explanation.ts'

/** What the endpoints about policies are asked and answer: files, candidates, and who may do what. */

/** Bodies of candidates, in bytes; and of claims. */
export const largestCandidates = 1_048_576
export const largestClaims = 262_144

const mostFiles = 200
const longestFile = 262_144

/**
 * Of a file of rules in its folder. Whatever a folder is read without is refused: hidden files, samples to copy from.
 * No dots at a beginning, so no way out of the folder.
 */
export const rulePath = z
  .string()
  .max(256)
  .regex(/^(?:[A-Za-z0-9_][A-Za-z0-9_.-]*\/){0,8}[A-Za-z0-9_][A-Za-z0-9_.-]*\.rego$/)
  .refine((path) => !path.split('/').some((one) => one === 'examples' || one === 'node_modules'))

const text = z.string().max(longestFile)
const few = (files: object) => Object.keys(files).length <= mostFiles

export const policyFiles = z.object({
  /** `bundle`: there are no files to see. */
  kind: z.enum(['folder', 'bundle']),
  /** Of the policies in force. */
  revision: z.string(),
  entrypoints: z.array(z.string()),
  /** Whether the rules in the folder are those in force; absent where that is not known. */
  inForce: z.boolean().optional(),
  files: z.array(
    z.object({
      path: z.string(),
      /** In bytes. */
      size: z.number(),
      /** Hexadecimal. */
      sha256: z.string(),
      /** Of rules and their tests, as far as they are short; never of data. */
      text: z.string().optional(),
    }),
  ),
  /** Why the folder cannot be read: a sentence. */
  problem: z.string().optional(),
  canSave: z.boolean(),
  /** Why not: a sentence. */
  cannotSave: z.string().optional(),
  /** Whether candidates can be tried: there is a compiler, and the policies are a folder. */
  canTry: z.boolean(),
})

const issue = z.object({
  file: z.string().optional(),
  line: z.number().optional(),
  column: z.number().optional(),
  message: z.string(),
})

export const ruleTests = z.object({
  passed: z.boolean(),
  /** OPA's own account of what failed, or one line. */
  report: z.string(),
  tests: z.array(
    z.object({
      package: z.string(),
      name: z.string(),
      file: z.string(),
      line: z.number(),
      outcome: z.enum(['passed', 'failed', 'skipped']),
      milliseconds: z.number(),
    }),
  ),
})

/** What may stand in a log of a decision: no header's value, no text made from the input. */
export const decisionSummary = z.object({
  allow: z.boolean(),
  reason: z.string().optional(),
  scope: z.array(z.string()).optional(),
  error: z.string().optional(),
  /** Names only. */
  headers: z.array(z.string()).optional(),
})

export const tryRequest = z.strictObject({
  /** In the place of the files in the folder, or beside them; `null` takes one away. */
  files: z.record(rulePath, text.nullable()).refine(few).default({}),
  /** Default: `policies.entrypoint`. */
  entrypoint: z.string().min(1).max(512).optional(),
  /** Absent: nothing is evaluated. */
  input: z.unknown().optional(),
  /** How many of the last decisions are asked once more. */
  decisions: z.number().int().min(0).max(1_000).default(0),
})

export const tryAnswer = z.object({
  /** Why the rules do not compile; then there is nothing else. */
  issues: z.array(issue),
  /** Mistakes in rules that compile, such as misspelt input. */
  warnings: z.array(issue),
  /** Entrypoints of routes that the candidates lack: the gateway would not load them. */
  missing: z.array(z.string()),
  tests: ruleTests.optional(),
  evaluation: z
    .object({
      /** Absent: no rule gave a value. */
      result: z.unknown().optional(),
      error: z.string().optional(),
      units: z.number(),
      /** What masks of the decision log have taken out of the result, as JSON pointers. */
      erased: z.array(z.string()).optional(),
      masked: z.array(z.string()).optional(),
      rules: z.array(explainedRule).optional(),
    })
    .optional(),
  /** The policies in force and the candidates, both asked with what was recorded. */
  decisions: z
    .object({
      /** Recorded ones that a policy was asked for. */
      found: z.number(),
      compared: z.number(),
      /** Rules read what masks have taken out. */
      notComparable: z.number(),
      /** Time ran out. */
      notAsked: z.number(),
      /** What was taken out and is read: JSON pointers. */
      hidden: z.array(z.string()),
      /** Newest first. */
      changes: z.array(
        z.object({
          request: z.string(),
          timestamp: z.string(),
          route: z.string().optional(),
          method: z.string().optional(),
          path: z.string().optional(),
          /** The members of the decision. */
          differs: z.array(z.string()),
          before: decisionSummary,
          after: decisionSummary,
        }),
      ),
    })
    .optional(),
})
export type TryRequest = z.output<typeof tryRequest>
export type TryAnswer = z.output<typeof tryAnswer>

export const saveRequest = z.strictObject({
  /** One file of rules at most, since two renames are no one step; and any number of tests. */
  files: z
    .record(
      rulePath,
      z.strictObject({
        /** `null`: the file goes. */
        text: text.nullable(),
        /** SHA-256 of what is replaced, hexadecimal; `null`: there is no such file. */
        replaces: z
          .string()
          .regex(/^[0-9a-f]{64}$/)
          .nullable(),
      }),
    )
    .refine((files) => few(files) && Object.keys(files).length > 0),
})
export type SaveRequest = z.output<typeof saveRequest>

export const saveAnswer = z.object({ files: z.array(z.object({ path: z.string(), sha256: z.string().optional() })) })

const claims = z.looseObject({
  iss: z.string().max(2_048),
  aud: z.union([z.string(), z.array(z.string()).max(32)]),
  exp: z.number().optional(),
})

export const accessRequest = z.strictObject({
  /** Claims of the tokens that somebody would have, one for each audience. None: nobody is signed in. */
  tokens: z.array(claims).max(32),
  /** Ids. Default: all. */
  routes: z.array(z.string().max(64)).max(200).optional(),
  /** Default: those of the route, and GET, POST, PUT, PATCH and DELETE where it takes all. */
  methods: z
    .array(z.string().regex(/^[A-Z][A-Z-]{0,31}$/))
    .min(1)
    .max(16)
    .optional(),
  /** A path for a route, by its id. Default: one made from its pattern. */
  paths: z.record(z.string().max(64), z.string().max(2_048)).default({}),
})
export type AccessRequest = z.output<typeof accessRequest>

export const accessAnswer = z.object({
  /** Of the policies that were asked. */
  revision: z.string(),
  answers: z.array(
    z.object({
      route: z.string(),
      method: z.string(),
      host: z.string(),
      path: z.string(),
      /** Which of the tokens was used, from 0. */
      token: z.number().optional(),
      allow: z.boolean(),
      /** That a caller would get; 200 stands for whatever the upstream answers. */
      status: z.number(),
      reason: z.string().optional(),
      /** The scopes that the policy or the route asks for and the token lacks. */
      requiredScopes: z.array(z.string()).optional(),
      /** Where the rules said so; told for a few at a time only. */
      line: z.object({ file: z.string(), line: z.number() }).optional(),
      /** Members of the input that a request would have, and this question has not. */
      without: z.array(z.string()),
    }),
  ),
  /** Whether there were more than could be asked. */
  more: z.boolean(),
})
export type AccessAnswer = z.output<typeof accessAnswer>
