import type { Balance } from '../config/settings/targets.ts'
import { type FieldList, valuesOf } from '../request/field-list.ts'
import type { DecidedRequest } from '../request/request-context.ts'
import type { Target } from './targets/target.ts'
import type { Choice, Targets } from './targets/targets.ts'

/** What a request asks of the target that gets it. Asked before the header fields for the upstream are made. */
export type ChooseTarget = (context: DecidedRequest) => Choice

export const anyTarget: Choice = Object.freeze({})

/** Nothing is computed for a request unless the upstream hashes, or its route names labels. */
export const createChooseTarget = (balance: Balance): ChooseTarget => {
  const keyOf = typeof balance === 'string' ? undefined : hashKey(balance.hash)
  return (context) => {
    const labels = context.route.targets && wantedLabels(context)
    const key = keyOf?.(context)
    return key === undefined && labels === undefined ? anyTarget : { key, labels }
  }
}

const wantedLabels = ({ route: { targets }, headers }: DecidedRequest) => {
  if (!targets) return undefined
  const { header, value } = targets.match
  const [sent, ...others] = valuesOf(headers.forwardable, header)
  return sent === value && others.length === 0 ? targets.labels : undefined
}

type HashKey = (context: DecidedRequest) => string | undefined

/** `subject`, `client-ip`, `header:<name>`. Requests that have none of it go to any target. */
const hashKey = (hash: string): HashKey => {
  if (hash === 'client-ip') return ({ request }) => request.clientIp
  // Two issuers may call two people the same.
  if (hash === 'subject') return ({ principal }) => principal && `${principal.claims.iss} ${principal.claims.sub}`
  const name = hash.slice('header:'.length)
  return ({ headers }) => joined(valuesOf(headers.forwardable, name))
}

const joined = (values: FieldList): string | undefined => (values.length === 0 ? undefined : values.join(', '))

/**
 * Who is asked after `tried` have failed: another one, or the same again where it may be asked `again` and there is no
 * other. Labels that the first choice asked for hold for every later one.
 */
export const nextTarget = (
  targets: Targets,
  choice: Choice,
  tried: readonly Target[],
  again: boolean,
): Target | undefined => {
  const other = targets.pick({ ...choice, tried })
  if (other && !tried.includes(other)) return other
  return again ? targets.pick(choice) : undefined
}
