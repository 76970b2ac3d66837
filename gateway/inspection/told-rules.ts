import type { ExplainedRule } from '../../policies/authoring/explain.ts'

/**
 * Rules that were asked, for whoever may read the input: of their variables only what stands in it too. The rest comes
 * from data, or is what masks take out of a result.
 */
export const toldRules = (rules: readonly ExplainedRule[], input: unknown): ExplainedRule[] => {
  const known = textsOf(input)
  const isKnown = (value: unknown) => typeof value === 'boolean' || value === null || known.has(String(value))
  const told = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(told)
    if (typeof value === 'object' && value !== null) return toldMembers(value)
    return isKnown(value) ? value : redacted
  }
  const toldMembers = (value: object) =>
    Object.fromEntries(
      Object.entries(value).map(([name, member]) => [isKnown(name) ? name : redacted, told(member)] as const),
    )
  const toldRule = (rule: ExplainedRule): ExplainedRule => ({
    ...rule,
    variables: Object.fromEntries(Object.entries(rule.variables).map(([name, value]) => [name, told(value)] as const)),
    rules: rule.rules.map(toldRule),
  })
  return rules.map(toldRule)
}

const redacted = '[redacted]'

/** Names, and values that hold no others. */
const textsOf = (input: unknown): ReadonlySet<string> => {
  const texts = new Set<string>()
  const left = [input]
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value !== 'object' || value === null) texts.add(String(value))
    else if (Array.isArray(value)) for (const item of value) left.push(item)
    else {
      for (const [name, member] of Object.entries(value)) {
        texts.add(name)
        left.push(member)
      }
    }
  }
  return texts
}
