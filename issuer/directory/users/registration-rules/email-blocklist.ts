import type { ProblemCode } from '../../../base/errors/problems.ts'
import type { SignInExperience } from '../../sign-in-experience/sign-in-experience.ts'

export type EmailBlocklistPolicy = Pick<
  SignInExperience['emailBlocklistPolicy'],
  'blockSubaddressing' | 'customAllowlist' | 'customBlocklist'
>

export type EmailRefusal = Extract<ProblemCode, `session.email_blocklist.${string}`>

/**
 * Why nobody may register with an address, or make it theirs; undefined when it will do. Lists have addresses, domains
 * (`@example.com`), and either with `*` for any text; case does not matter. A list of what is allowed, where there is
 * one, refuses all others. Domains of throw-away addresses are the operator's to list:
 * `blockDisposableAddresses` has no list of its own.
 */
export const checkEmail = (email: string, policy: EmailBlocklistPolicy): EmailRefusal | undefined => {
  const { blockSubaddressing, customAllowlist, customBlocklist } = policy
  const at = email.lastIndexOf('@')
  if (blockSubaddressing && email.slice(0, at).includes('+')) {
    return 'session.email_blocklist.email_subaddressing_not_allowed'
  }
  const isOn = (list: readonly string[]) => list.some((item) => matches(item, email, at))
  const isRefused = isOn(customBlocklist) || (customAllowlist.length > 0 && !isOn(customAllowlist))
  return isRefused ? 'session.email_blocklist.email_not_allowed' : undefined
}

const matches = (item: string, email: string, at: number): boolean =>
  item.startsWith('@') ? fits(item.slice(1), email.slice(at + 1)) : fits(item, email)

/** Without a regular expression: one of many `*` would take ever longer. */
const fits = (pattern: string, text: string): boolean => {
  const [head, ...rest] = pattern.toLowerCase().split('*') as [string, ...string[]]
  const lower = text.toLowerCase()
  const tail = rest.pop()
  if (tail === undefined) return lower === head
  if (!lower.startsWith(head) || !lower.endsWith(tail) || lower.length < head.length + tail.length) return false
  let place = head.length
  const end = lower.length - tail.length
  for (const part of rest) {
    const found = lower.indexOf(part, place)
    if (found === -1 || found + part.length > end) return false
    place = found + part.length
  }
  return true
}
