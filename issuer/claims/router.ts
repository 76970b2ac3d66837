import { z } from 'zod'
import { type Database, queryOf } from '../../platform/database/database.ts'
import { changesOf } from '../base/change.ts'
import { problem } from '../base/errors/problems.ts'
import type { Mutate } from '../base/mutate.ts'
import { type Route, route } from '../base/route.ts'
import { jsonObject } from '../base/schemas.ts'
import { checkResult } from './claims-result.ts'
import {
  type ClaimsScript,
  type ClaimsScriptInput,
  claimsScript,
  claimsScriptPatch,
  claimsTest,
  listedScript,
  scriptKeys,
  scriptKinds,
} from './claims-script.ts'
import type { ClaimsScriptStore, StoredScript } from './claims-script-store.ts'
import type { ScriptOutcome } from './sandbox/messages.ts'
import type { ClaimsSandbox, ScriptCall } from './sandbox/sandbox.ts'

export interface ClaimsRouteDependencies {
  database: Pick<Database, 'query'>
  mutate: Mutate
  claimsScripts: ClaimsScriptStore
  sandbox: Pick<ClaimsSandbox, 'run'>
}

const params = z.object({ tokenType: z.enum(scriptKinds) })
const one = '/configs/jwt-customizer/:tokenType'

export const claimsRoutes = ({ database, mutate, claimsScripts, sandbox }: ClaimsRouteDependencies): Route[] => {
  const trial = async (call: Omit<ScriptCall, 'owner'>, clientId: string): Promise<string | undefined> => {
    const { outcome } = await sandbox.run({ ...call, owner: `trial ${clientId}`, isTrial: true })
    return resultOf(outcome)
  }

  /**
   * A script that cannot even be read would refuse every token. Also what it does outside of its function is done here.
   */
  const requireUsable = async (value: Pick<ClaimsScript, 'script' | 'environmentVariables'>, clientId: string) => {
    const { script, environmentVariables = {} } = value
    await trial({ script, input: undefined, environmentVariables }, clientId)
  }

  return [
    route({
      method: 'GET',
      path: '/configs/jwt-customizer',
      operationId: 'listClaimsScripts',
      summary: 'Lists the scripts that add claims to access tokens.',
      scope: 'claims',
      freshProof: true,
      secret: true,
      status: 200,
      response: z.array(listedScript),
      handle: async () => ({
        body: (await claimsScripts.list(database.query)).map((stored) => ({
          key: scriptKeys[stored.kind],
          value: answerOf(stored),
        })),
      }),
    }),
    route({
      method: 'POST',
      path: '/configs/jwt-customizer/test',
      operationId: 'testClaimsScript',
      summary: 'Runs a script with a token and a context, and answers the claims it would add.',
      scope: 'claims',
      freshProof: true,
      body: claimsTest,
      status: 200,
      idempotency: 'none',
      response: jsonObject,
      problems: ['jwt_customizer.denied', 'jwt_customizer.general', 'jwt_customizer.unavailable'],
      async handle(context) {
        const { body, caller } = context
        const { script, environmentVariables = {}, token } = body
        const input = JSON.stringify({ token, context: body.context ?? {} })
        const checked = checkResult(await trial({ script, input, environmentVariables }, caller.clientId))
        if ('wrong' in checked) throw broken(checked.wrong, 'result')
        // It changes nothing, but who tried what out belongs into the trail.
        await mutate(context, async () => {})
        return { body: checked.claims }
      },
    }),
    route({
      method: 'GET',
      path: one,
      operationId: 'getClaimsScript',
      summary: 'Answers a script with its environment variables.',
      scope: 'claims',
      freshProof: true,
      secret: true,
      params,
      status: 200,
      response: claimsScript,
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { tokenType } }) {
        const found = await claimsScripts.find(database.query, tokenType)
        if (!found) throw missing(tokenType)
        return { body: answerOf(found) }
      },
    }),
    route({
      method: 'PUT',
      path: one,
      operationId: 'putClaimsScript',
      summary: 'Sets the script of a kind of tokens: 201 for the first one, 200 when it replaces another.',
      scope: 'claims',
      freshProof: true,
      params,
      body: claimsScript,
      status: 200,
      mayCreate: true,
      response: claimsScript,
      problems: ['jwt_customizer.general', 'jwt_customizer.unavailable'],
      async handle(context) {
        const { tokenType } = context.params
        const value = withDefaults(context.body)
        await requireUsable(value, context.caller.clientId)
        const { created } = await mutate(context, ({ trx }) => claimsScripts.put(queryOf(trx), tokenType, value))
        return { body: value, status: created ? 201 : 200 }
      },
    }),
    route({
      method: 'PATCH',
      path: one,
      operationId: 'updateClaimsScript',
      summary: 'Changes members of a script; those that are objects are replaced whole.',
      scope: 'claims',
      freshProof: true,
      params,
      body: claimsScriptPatch,
      status: 200,
      response: claimsScript,
      problems: ['entity.not_exists_with_id', 'jwt_customizer.general', 'jwt_customizer.unavailable'],
      async handle(context) {
        const { params, body } = context
        if (body.script !== undefined) {
          const { script, environmentVariables } = body
          await requireUsable({ script, environmentVariables }, context.caller.clientId)
        }
        const changed = await mutate(context, async ({ trx }) => {
          const current = await claimsScripts.lock(queryOf(trx), params.tokenType)
          if (!current) throw missing(params.tokenType)
          const value = { ...answerOf(current), ...changesOf(answerOf(current), body as Partial<ClaimsScript>) }
          await claimsScripts.put(queryOf(trx), params.tokenType, value)
          return value
        })
        return { body: changed }
      },
    }),
    route({
      method: 'DELETE',
      path: one,
      operationId: 'deleteClaimsScript',
      summary: 'Removes a script: tokens are issued without custom claims from then on.',
      scope: 'claims',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found'],
      async handle(context) {
        await mutate(context, async ({ trx }) => {
          if (!(await claimsScripts.remove(queryOf(trx), context.params.tokenType))) throw problem('entity.not_found')
        })
      },
    }),
  ]
}

const withDefaults = ({ blockIssuanceOnError = true, ...value }: ClaimsScriptInput): ClaimsScript => ({
  ...value,
  blockIssuanceOnError,
})

const answerOf = ({ kind: _, version: __, ...value }: StoredScript): ClaimsScript => value

const missing = (tokenType: string) =>
  problem('entity.not_exists_with_id', { detail: `There is no script for ${tokenType}.`, data: { id: tokenType } })

const broken = (message: string, failure: string) =>
  problem('jwt_customizer.general', { detail: message, data: { message, failure } })

/**
 * The JSON of what was returned. The operator is told why there is none, without the values of environment variables.
 */
const resultOf = (outcome: ScriptOutcome): string | undefined => {
  if ('returned' in outcome) return outcome.returned
  if ('denied' in outcome) {
    throw problem('jwt_customizer.denied', { ...(outcome.denied !== '' && { detail: outcome.denied }) })
  }
  if (outcome.failed === 'busy' || outcome.failed === 'stopped') {
    throw problem('jwt_customizer.unavailable', { headers: { 'Retry-After': '1' } })
  }
  throw broken(outcome.message, outcome.failed)
}
