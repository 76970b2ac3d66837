import { z } from 'zod'
import type { DecisionRecord, Why } from './decision-answers.ts'

/** The policy's input as a record has it: masks, or a refusal before the policy was asked, may leave out any member. */
const text = z.string().optional().catch(undefined)
const texts = z.array(z.string()).optional().catch(undefined)
const seconds = z.number().optional().catch(undefined)
const named = z.looseObject({ id: text }).optional().catch(undefined)

const recordedInput = z.looseObject({
  /** Of whole inputs: those that a policy was asked with. */
  version: z.literal(1).optional().catch(undefined),
  request: z.looseObject({ method: text, host: text, path: text }).optional().catch(undefined),
  route: z.looseObject({ scopes: texts }).optional().catch(undefined),
  token: z
    .looseObject({
      iss: text,
      aud: texts,
      scopes: texts,
      sid: text,
      acr: text,
      auth_time: seconds,
      exp: seconds,
      claims: z.record(z.string(), z.unknown()).optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
  subject: named,
  actor: z.looseObject({ id: text, chain: texts }).optional().catch(undefined),
  client: named,
  organization: named,
  now: seconds,
})
export type RecordedInput = z.output<typeof recordedInput>

export const readInput = ({ input }: DecisionRecord): RecordedInput => {
  const parsed = recordedInput.safeParse(input)
  return parsed.success ? parsed.data : {}
}

/** JSON pointers to what was there and is not in the record, or is something else there. */
export const hiddenOf = (record: DecisionRecord, whole = '/input'): string[] => {
  const { erased = [], masked = [] } = record
  const unwritable = z.array(z.string()).catch([]).parse(record['unwritable'])
  return [...erased, ...masked, ...unwritable.map((name) => `/${name}`)].filter((pointer) => isWithin(pointer, whole))
}

/** Whether one of the two holds the other. */
export const touches = (hidden: string, pointer: string): boolean =>
  isWithin(hidden, pointer) || isWithin(pointer, hidden)

const isWithin = (pointer: string, whole: string): boolean => pointer === whole || pointer.startsWith(`${whole}/`)

export const tokenFacts = ({ token, subject, actor, client, organization }: RecordedInput): Why['token'] => {
  if (!token) return undefined
  const facts = {
    issuer: token.iss,
    subject: subject?.id,
    actors: actor?.chain ?? (actor?.id === undefined ? undefined : [actor.id]),
    client: client?.id,
    organization: organization?.id,
    audience: token.aud,
    scopes: token.scopes,
    sid: token.sid,
    acr: token.acr,
    expires: token.exp,
    bound: boundTo(token.claims),
  }
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined))
}

/** RFC 7800: what the caller must have beside the token. */
export const boundTo = (claims: Record<string, unknown> = {}): 'key' | 'certificate' | undefined => {
  const { cnf } = claims
  if (typeof cnf !== 'object' || cnf === null) return undefined
  if ('jkt' in cnf) return 'key'
  return 'x5t#S256' in cnf ? 'certificate' : undefined
}
