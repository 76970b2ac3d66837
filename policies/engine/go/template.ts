import { queryEscape } from '../builtins/encoding.ts'
import { compareStrings, Decimal, isNumber, numberText, sortedEntries, type Value } from '../values.ts'
import { isPrintable } from './quote.ts'
import { display, type GoValue, sprintf } from './sprintf.ts'
import {
  type Conditional,
  type Node,
  type Operand,
  type Pipe,
  parseTemplate,
  TemplateError,
  type TemplateValue,
} from './template-parse.ts'

export { TemplateError } from './template-parse.ts'

/** A template may loop over what callers send. Characters of output, and steps. */
const longest = 1_048_576
const mostSteps = 100_000
const deepest = 50

/** `text/template` over JSON data. Throws `TemplateError`. */
export const renderTemplate = (source: string, data: Value): string => {
  const template = parseTemplate(source)
  let output = ''
  let steps = 0
  let depth = 0

  const run = (nodes: readonly Node[], dot: TemplateValue, scope: Scope): 'break' | 'continue' | undefined => {
    for (const node of nodes) {
      if (++steps > mostSteps || output.length > longest) throw new TemplateError('the template takes too long')
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
        if (node.pipe.declares.length === 0) output += shown(value)
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
    if (!nodes || ++depth > deepest) throw new TemplateError(`template ${name} cannot be used here`)
    run(nodes, value, { variables: new Map([['$', value]]), outer: undefined })
    depth--
    return undefined
  }

  const runRange = (node: Conditional<'range'>, dot: TemplateValue, scope: Scope) => {
    const { declares } = node.pipe
    const entries = entriesOf(evaluate({ ...node.pipe, declares: [] }, dot, scope))
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
    if (first!.kind !== 'function') return operand(first!, dot, scope)
    const lazy = rest.map((one) => () => operand(one, dot, scope))
    const args = [...lazy, ...piped.map((value) => () => value)]
    if (first!.name === 'and' || first!.name === 'or') return shortCut(first!.name, args)
    return functions[first!.name]!(args.map((argument) => argument()))
  }

  const operand = (one: Operand, dot: TemplateValue, scope: Scope): TemplateValue =>
    one.path.reduce<TemplateValue>(field, start(one, dot, scope))

  const start = (one: Operand, dot: TemplateValue, scope: Scope): TemplateValue => {
    if (one.kind === 'dot') return dot
    if (one.kind === 'nil') return null
    if (one.kind === 'literal') return one.value
    if (one.kind === 'pipe') return evaluate(one.pipe, dot, scope)
    if (one.kind === 'variable') return lookUp(scope, one.name)
    return functions[(one as { name: string }).name]!([])
  }

  run(template.nodes, data, { variables: new Map([['$', data]]), outer: undefined })
  // OPA does this to the whole output.
  return output.replaceAll('<no value>', '<undefined>')
}

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

const refuse = (message: string): never => {
  throw new TemplateError(message)
}

const field = (value: TemplateValue, name: string): TemplateValue => {
  if (value === undefined) return undefined
  return value instanceof Map ? value.get(name) : refuse(`can't evaluate field ${name}`)
}

/** A number of the data, which is a text of digits to Go. */
const isDataNumber = (value: TemplateValue) => value !== undefined && isNumber(value as Value)

const isOwnNumber = (value: TemplateValue): value is { int: bigint } | { float: number } =>
  typeof value === 'object' &&
  value !== null &&
  !(value instanceof Decimal || value instanceof Map || value instanceof Set || Array.isArray(value))

const isTrue = (value: TemplateValue): boolean => {
  if (value === undefined || value === null || value === false || value === '') return false
  if (value instanceof Map) return value.size > 0
  if (Array.isArray(value)) return value.length > 0
  return isOwnNumber(value) ? !isZero(value) : true
}

const isZero = (value: { int: bigint } | { float: number }): boolean =>
  'int' in value ? value.int === 0n : value.float === 0

const entriesOf = (value: TemplateValue): [TemplateValue, TemplateValue][] => {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value.map((item, index) => [{ int: BigInt(index) }, item])
  if (value instanceof Map) return sortedEntries(value)
  if (!isOwnNumber(value) || !('int' in value)) return refuse("range can't iterate over this")
  if (value.int > BigInt(mostSteps)) refuse('the template takes too long')
  return Array.from({ length: Math.max(Number(value.int), 0) }, (_, index) => [
    { int: BigInt(index) },
    { int: BigInt(index) },
  ])
}

// --- writing

const shown = (value: TemplateValue): string =>
  value === undefined || value === null ? '<no value>' : display(goValue(value))

const goValue = (value: TemplateValue): GoValue => {
  if (typeof value === 'string') return { type: 'string', value }
  if (typeof value === 'boolean') return { type: 'bool', value }
  if (isOwnNumber(value)) {
    return 'int' in value ? { type: 'int', value: value.int } : { type: 'float64', value: value.float }
  }
  if (isDataNumber(value)) return { type: 'json.Number', value: numberText(value as number) }
  return { type: 'string', value: collection(value as Value | undefined) }
}

/** `[a b]`, `map[k:v]`, `<nil>`. */
const collection = (value: Value | undefined): string => {
  if (value === undefined || value === null) return '<nil>'
  if (Array.isArray(value)) return `[${value.map(collection).join(' ')}]`
  if (!(value instanceof Map)) return display(goValue(value))
  return `map[${sortedEntries(value)
    .map(([key, member]) => `${String(key)}:${collection(member)}`)
    .join(' ')}]`
}

/** `fmt.Sprint`: a space between two operands of which neither is a text. */
const print = (values: readonly TemplateValue[]): string =>
  values
    .map((value, index) => {
      const isText = (one: TemplateValue) => typeof one === 'string' || isDataNumber(one)
      const gap = index > 0 && !isText(value) && !isText(values[index - 1]) ? ' ' : ''
      return gap + display(goValue(value))
    })
    .join('')

/** A single text is taken as it is. */
const textOf = (values: readonly TemplateValue[]): string =>
  values.length === 1 && typeof values[0] === 'string' ? values[0] : print(values)

const htmlEscapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
  '\0': '\ufffd',
}

const jsEscape = (text: string): string =>
  Array.from(text, (character) => {
    if ('\\\'"'.includes(character)) return `\\${character}`
    if (!'<>&='.includes(character) && (character >= ' ' ? isPrintable(character) : false)) return character
    return `\\u${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
  }).join('')

// --- functions

const shortCut = (name: 'and' | 'or', args: readonly (() => TemplateValue)[]): TemplateValue => {
  if (args.length === 0) return refuse(`${name} needs an operand`)
  let value: TemplateValue
  for (const argument of args) {
    value = argument()
    if (isTrue(value) === (name === 'or')) return value
  }
  return value
}

const indexNumber = (value: TemplateValue, most: number): number => {
  if (!isOwnNumber(value) || !('int' in value)) return refuse('an index must be an integer')
  return value.int >= 0n && value.int <= BigInt(most) ? Number(value.int) : refuse('index out of range')
}

const index = ([value, ...keys]: TemplateValue[]): TemplateValue =>
  keys.reduce<TemplateValue>((at, key) => {
    if (at instanceof Map) return typeof key === 'string' ? at.get(key) : refuse('the key of a map must be a text')
    if (Array.isArray(at)) return at[indexNumber(key, at.length - 1)]
    if (typeof at === 'string') return { int: BigInt(Buffer.from(at)[indexNumber(key, Buffer.byteLength(at) - 1)]!) }
    return refuse("can't index this")
  }, value)

const slice = ([value, ...bounds]: TemplateValue[]): TemplateValue => {
  if ((typeof value !== 'string' && !Array.isArray(value)) || bounds.length > 2) return refuse("can't slice this")
  const whole = typeof value === 'string' ? Buffer.from(value) : value
  const to = bounds[1] === undefined ? whole.length : indexNumber(bounds[1], whole.length)
  const from = bounds[0] === undefined ? 0 : indexNumber(bounds[0], to)
  const part = whole.slice(from, to)
  return Array.isArray(part) ? part : Buffer.from(part).toString()
}

const length = ([value]: TemplateValue[]): TemplateValue => {
  if (value instanceof Map) return { int: BigInt(value.size) }
  if (Array.isArray(value)) return { int: BigInt(value.length) }
  const text = isDataNumber(value) ? numberText(value as number) : value
  return typeof text === 'string' ? { int: BigInt(Buffer.byteLength(text)) } : refuse('this has no length')
}

/** What can be compared with each other. */
const basic = (value: TemplateValue): { kind: string; value: string | boolean | bigint | number | null } => {
  if (value === undefined || value === null) return { kind: 'nil', value: null }
  if (typeof value === 'string' || typeof value === 'boolean') return { kind: typeof value, value }
  if (isDataNumber(value)) return { kind: 'string', value: numberText(value as number) }
  if (!isOwnNumber(value)) return refuse('this cannot be compared')
  return 'int' in value ? { kind: 'int', value: value.int } : { kind: 'float', value: value.float }
}

const equal = (a: TemplateValue, b: TemplateValue): boolean => {
  const [left, right] = [basic(a), basic(b)]
  if (left.kind !== right.kind && left.kind !== 'nil' && right.kind !== 'nil')
    refuse('incompatible types for comparison')
  return left.value === right.value
}

const less = (a: TemplateValue, b: TemplateValue): boolean => {
  const [left, right] = [basic(a), basic(b)]
  if (left.kind !== right.kind || !['int', 'float', 'string'].includes(left.kind))
    refuse('invalid types for comparison')
  if (typeof left.value === 'string') return compareStrings(left.value, right.value as string) < 0
  return (left.value as number) < (right.value as number)
}

const two =
  (test: (a: TemplateValue, b: TemplateValue) => boolean) =>
  (args: TemplateValue[]): boolean =>
    args.length === 2 ? test(args[0], args[1]) : refuse('two operands are needed')

const functions: Record<string, (args: TemplateValue[]) => TemplateValue> = {
  call: () => refuse('there is no function to call'),
  eq: ([first, ...others]) =>
    others.length === 0 ? refuse('missing argument for comparison') : others.some((other) => equal(first, other)),
  ge: two((a, b) => !less(a, b)),
  gt: two((a, b) => !less(a, b) && !equal(a, b)),
  html: (args) => textOf(args).replace(/[&<>"'\0]/g, (character) => htmlEscapes[character]!),
  index,
  js: (args) => jsEscape(textOf(args)),
  le: two((a, b) => less(a, b) || equal(a, b)),
  len: length,
  lt: two(less),
  ne: two((a, b) => !equal(a, b)),
  not: ([value]) => !isTrue(value),
  print,
  printf: ([format, ...args]) =>
    typeof format === 'string' ? sprintf(format, args.map(goValue)) : refuse('a format must be a text'),
  println: (args) => `${args.map((value) => display(goValue(value))).join(' ')}\n`,
  slice,
  urlquery: (args) => queryEscape(textOf(args)),
}
