import { inputReads } from '../engine/index.ts'

/**
 * The entrypoints among `names` whose rules read `input.request.body`, by OPA's intermediate representation. Of rules
 * that hand the whole input or request on, only whether any rule names a member `body` is known: then they count too.
 */
export const readersOfBody = (plan: unknown, names: readonly string[]): string[] => {
  const reads = inputReads(plan)
  const named = namesBody(plan)
  return names.filter((name) => {
    const members = reads[name]
    if (members === undefined) return false
    const ofRequest = members === null ? null : Object.hasOwn(members, 'request') ? members['request'] : []
    return ofRequest === null ? named : (ofRequest?.includes('body') ?? false)
  })
}

const namesBody = (plan: unknown): boolean => {
  const strings = (plan as { static?: { strings?: readonly { value?: unknown }[] | null } }).static?.strings
  return strings?.some(({ value }) => value === 'body') ?? false
}
