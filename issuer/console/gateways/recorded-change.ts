import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Query } from '../../../platform/database/database.ts'
import { insertLog } from '../../base/audit/log-store.ts'
import type { RequestOrigin } from '../../base/client-address.ts'
import { consoleClientId } from '../../base/console-roles.ts'
import { asAppError } from '../../base/errors/error-answer.ts'
import type { ConsoleSession } from '../session-store.ts'
import { codeOf, type GatewayAnswer } from './client.ts'

/** What somebody wants to change at a gateway. */
export interface GatewayChange {
  session: Pick<ConsoleSession, 'user' | 'authorizationId'>
  origin: RequestOrigin
  gateway: string
  /** Of the inspection API. */
  path: string
}

/** Lets somebody change a gateway. `attempt` tells the body as soon as it is read. */
export type RecordChange = (
  change: GatewayChange,
  attempt: (tellBody: (body: unknown) => void) => Promise<GatewayAnswer>,
) => Promise<GatewayAnswer>

/** Of a body, what the row says. The gateway reads it by its own schema. */
const rulesToSave = z.object({
  files: z.record(
    z.string().max(256),
    z.object({
      text: z.string().nullable(),
      replaces: z
        .string()
        .regex(/^[0-9a-f]{64}$/)
        .nullable(),
    }),
  ),
})
const mostFiles = 200

/**
 * Leaves a row in the audit trail of each attempt, whatever came of it: who, which gateway, and of each file the
 * SHA-256 before and after; never a text. There is no answer without the row.
 */
export const createRecordChange =
  (query: Query): RecordChange =>
  async ({ session, origin, gateway, path }, attempt) => {
    let body: unknown
    const record = (outcome: { error?: object }) =>
      insertLog(query, {
        key: path === 'policies/files' ? 'Console.savePolicies' : 'Console.changeGateway',
        result: outcome.error ? 'Error' : 'Success',
        applicationId: consoleClientId,
        userId: session.user.id,
        payload: {
          ...origin,
          person: { userId: session.user.id, sid: session.authorizationId },
          method: 'PUT',
          path: `/console/gateways/${gateway}/${path}`,
          gateway,
          files: filesOf(body),
          ...outcome,
        },
      })
    let answer: GatewayAnswer
    try {
      answer = await attempt((told) => {
        body = told
      })
    } catch (error) {
      await record({ error: failureOf(error) })
      throw error
    }
    const { status } = answer
    await record(status === 200 ? {} : { error: { code: codeOf(answer.body), status } })
    return answer
  }

const filesOf = (body: unknown): object[] | undefined => {
  const { data } = rulesToSave.safeParse(body)
  return (
    data &&
    Object.entries(data.files)
      .slice(0, mostFiles)
      .map(([file, { text, replaces }]) => ({ file, before: replaces, after: text === null ? null : sha256(text) }))
  )
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const failureOf = (thrown: unknown): object => {
  const { code, status, detail } = asAppError(thrown)
  return { code, status, message: detail }
}
