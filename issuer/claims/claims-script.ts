import { z } from 'zod'
import { jsonObject } from '../base/schemas.ts'

/** Which tokens a script is for: those that stand for a user, or those of machine-to-machine applications. */
export const scriptKinds = ['access-token', 'client-credentials'] as const
export type ScriptKind = (typeof scriptKinds)[number]

/** What existing clients call the two in lists. */
export const scriptKeys = {
  'access-token': 'jwt.accessToken',
  'client-credentials': 'jwt.clientCredentials',
} as const satisfies Record<ScriptKind, string>

const maxScriptLength = 65_536
const maxEnvironmentLength = 32_768

const sizeOf = (value: object) => JSON.stringify(value).length

const script = z.string().min(1).max(maxScriptLength)
const environmentVariables = z
  .record(z.string().min(1).max(256), z.string())
  .refine(
    (value) => sizeOf(value) <= maxEnvironmentLength,
    `must not exceed ${maxEnvironmentLength} characters of JSON`,
  )
const sample = jsonObject.refine(
  (value) => sizeOf(value) <= maxScriptLength,
  `must not exceed ${maxScriptLength} characters of JSON`,
)

/** A script as the Management API takes and answers it. */
export const claimsScript = z.strictObject({
  /** JavaScript that defines the function `getCustomJwtClaims`. */
  script,
  /** What the script is given besides, kept encrypted. */
  environmentVariables: environmentVariables.optional(),
  /** For trying the script out; kept and answered as they are. */
  tokenSample: sample.optional(),
  contextSample: sample.optional(),
  /** True (default): no token without its claims. False: when the script fails, the token is issued without them. */
  blockIssuanceOnError: z.boolean().optional(),
})
export type ClaimsScriptInput = z.output<typeof claimsScript>

export const claimsScriptPatch = claimsScript.partial()

/** As it is stored: with its defaults. */
export interface ClaimsScript extends Omit<ClaimsScriptInput, 'blockIssuanceOnError'> {
  blockIssuanceOnError: boolean
}

/** `POST …/test`: a script with what it would be given. */
export const claimsTest = z.strictObject({
  tokenType: z.enum(scriptKinds),
  script,
  environmentVariables: environmentVariables.optional(),
  token: sample,
  context: sample.optional(),
})

export const listedScript = z.strictObject({ key: z.enum(Object.values(scriptKeys)), value: claimsScript })
