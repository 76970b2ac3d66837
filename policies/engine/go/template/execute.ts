import type { Meter } from '../../base/meter.ts'
import type { Value } from '../../values/value.ts'
import { functions, payForText, type TemplateFunction } from './functions.ts'
import { type Conditional, type Node, type Operand, type Pipe, parseTemplate } from './parse.ts'
import { entriesOf, fieldOf, isTrue, refuse, shown, type TemplateValue } from './values.ts'

export { TemplateError } from './values.ts'

/** A template may loop over what callers send. Characters of output, and steps. */
const unitsForStep = 50
const longest = 1_048_576
const mostSteps = 100_000
const deepest = 50

/** `text/template` over JSON data. Throws `TemplateError`. */
export const renderTemplate = (source: string, data: Value, meter: Meter): string => {
  const { spend } = meter
  const template = parseTemplate(source, meter)
  let output = ''
  let steps = 0
  let depth = 0

  const run = (nodes: readonly Node[], dot: TemplateValue, scope: Scope): 'break' | 'continue' | undefined => {
    for (const node of nodes) {
      spend(unitsForStep)
      if (++steps > mostSteps || output.length > longest) refuse('the template takes too long')
      const left = runNode(node, dot, scope)
      if (left) return left
    }
    return undefined
  }

  const runNode = (node: Node, dot: TemplateValue, scope: Scope): 'break' | 'continue' | undefined => {
    switch (node.kind) {
      case 'text':
        output += node.text
        return undefined
      case 'show': {
        const value = evaluate(node.pipe, dot, scope)
        if (node.pipe.declares.length > 0) return undefined
        payForText([value], meter)
        output += shown(value)
        return undefined
      }
      case 'template':
        return runTemplate(node.name, node.pipe ? evaluate(node.pipe, dot, scope) : undefined)
      case 'range':
        return runRange(node, dot, scope)
      case 'if':
      case 'with': {
        const inner = { variables: new Map<string, TemplateValue>(), outer: scope }
        const value = evaluate(node.pipe, dot, inner)
        if (!isTrue(value)) return run(node.otherwise, dot, inner)
        return run(node.then, node.kind === 'with' ? value : dot, inner)
      }
      default:
        return node.kind
    }
  }

  const runTemplate = (name: string, value: TemplateValue): undefined => {
    const nodes = template.named.get(name)
    if (!nodes || ++depth > deepest) return refuse(`template ${name} cannot be used here`)
    run(nodes, value, { variables: new Map([['$', value]]), outer: undefined })
    depth--
    return undefined
  }

  const runRange = (node: Conditional<'range'>, dot: TemplateValue, scope: Scope) => {
    const { declares } = node.pipe
    const entries = entriesOf(evaluate({ ...node.pipe, declares: [] }, dot, scope), mostSteps)
    spend(unitsForStep * entries.length)
    if (entries.length === 0) return run(node.otherwise, dot, scope)
    for (const [key, value] of entries) {
      const values = declares.length === 2 ? [key, value] : [value]
      const inner: Scope = { variables: new Map(), outer: scope }
      for (const [index, name] of declares.entries()) {
        if (node.pipe.assigns) assign(scope, name, values[index])
        else inner.variables.set(name, values[index])
      }
      if (run(node.then, value, inner) === 'break') break
    }
    return undefined
  }

  const evaluate = (pipe: Pipe, dot: TemplateValue, scope: Scope): TemplateValue => {
    let value: TemplateValue
    for (const [index, command] of pipe.commands.entries()) {
      value = call(command, dot, scope, index > 0 ? [value] : [])
    }
    for (const name of pipe.declares) {
      if (pipe.assigns) assign(scope, name, value)
      else scope.variables.set(name, value)
    }
    return value
  }

  const call = (
    [first, ...rest]: readonly Operand[],
    dot: TemplateValue,
    scope: Scope,
    piped: TemplateValue[],
  ): TemplateValue => {
    if (first?.kind !== 'function') return first && operand(first, dot, scope)
    const operands = rest.map((one) => () => operand(one, dot, scope))
    return functionNamed(first.name)([...operands, ...piped.map((value) => () => value)], meter)
  }

  const operand = (one: Operand, dot: TemplateValue, scope: Scope): TemplateValue =>
    one.path.reduce<TemplateValue>(fieldOf, start(one, dot, scope))

  const start = (one: Operand, dot: TemplateValue, scope: Scope): TemplateValue => {
    if (one.kind === 'literal') return one.value
    if (one.kind === 'pipe') return evaluate(one.pipe, dot, scope)
    if ('name' in one) return one.kind === 'variable' ? lookUp(scope, one.name) : functionNamed(one.name)([], meter)
    return one.kind === 'dot' ? dot : null
  }

  run(template.nodes, data, { variables: new Map([['$', data]]), outer: undefined })
  // OPA does this to the whole output.
  return output.replaceAll('<no value>', '<undefined>')
}

const functionNamed = (name: string): TemplateFunction => functions.get(name) ?? refuse(`function ${name} not defined`)

interface Scope {
  variables: Map<string, TemplateValue>
  outer: Scope | undefined
}

const holderOf = (scope: Scope, name: string): Scope | undefined => {
  let at: Scope | undefined = scope
  while (at && !at.variables.has(name)) at = at.outer
  return at
}

const lookUp = (scope: Scope, name: string): TemplateValue => holderOf(scope, name)?.variables.get(name)

const assign = (scope: Scope, name: string, value: TemplateValue): void => {
  ;(holderOf(scope, name) ?? scope).variables.set(name, value)
}
