import type { Meter } from '../../base/meter.ts'
import { functions } from './functions.ts'
import { lex, numberOf, type Token, unquote } from './lex.ts'
import { refuse, type TemplateValue } from './values.ts'

/** Go's text/template, second step: from tokens to nodes. */

export interface Pipe {
  /** `$x := …` or `$i, $x := …`; with `=` they must exist already. */
  declares: readonly string[]
  assigns: boolean
  commands: readonly (readonly Operand[])[]
}

/** With the fields that are taken of it. */
export type Operand =
  | { kind: 'dot' | 'nil'; path: readonly string[] }
  | { kind: 'variable' | 'function'; name: string; path: readonly string[] }
  | { kind: 'pipe'; pipe: Pipe; path: readonly string[] }
  | { kind: 'literal'; value: TemplateValue; path: readonly string[] }

export interface Conditional<Kind extends string> {
  kind: Kind
  pipe: Pipe
  then: readonly Node[]
  otherwise: readonly Node[]
}

export type Node =
  | { kind: 'text'; text: string }
  | { kind: 'show'; pipe: Pipe }
  | Conditional<'if' | 'with'>
  | Conditional<'range'>
  | { kind: 'template'; name: string; pipe: Pipe | undefined }
  | { kind: 'break' | 'continue' }

export interface Template {
  nodes: readonly Node[]
  named: ReadonlyMap<string, readonly Node[]>
}

const deepest = 100

export const parseTemplate = (source: string, meter: Meter): Template => {
  const all = lex(source, meter)
  const named = new Map<string, readonly Node[]>()
  const scope: string[] = ['$']
  let next = 0
  let loops = 0
  let depth = 0

  type End = { word: string; tokens: Token[] }

  /** Up to the `end` or `else` that belongs to the block, or the end of all. */
  const block = (inside: boolean): { nodes: Node[]; end: End } => {
    if (++depth > deepest) refuse('blocks are nested too deeply')
    const nodes: Node[] = []
    for (;;) {
      const piece = all[next++]
      if (!piece) {
        if (inside) refuse('unexpected EOF')
        depth--
        return { nodes, end: { word: '', tokens: [] } }
      }
      if ('text' in piece) {
        nodes.push({ kind: 'text', text: piece.text })
        continue
      }
      const [first, ...rest] = piece.tokens
      const word = first?.kind === 'word' ? first.text : ''
      if (word === 'end' || word === 'else') {
        if (!inside) refuse(`unexpected {{${word}}}`)
        depth--
        return { nodes, end: { word, tokens: trimSpace(rest) } }
      }
      const node = statement(word, piece.tokens, trimSpace(rest))
      if (node) nodes.push(node)
    }
  }

  const statement = (word: string, tokens: Token[], rest: Token[]): Node | undefined => {
    if (word === 'if' || word === 'with' || word === 'range') return conditional(word, rest)
    if (word === 'break' || word === 'continue') {
      if (loops === 0 || rest.length > 0) refuse(`{{${word}}} outside {{range}}`)
      return { kind: word }
    }
    if (word === 'template' || word === 'block' || word === 'define') return template(word, rest)
    return { kind: 'show', pipe: readPipe(tokens, scope, false, meter) }
  }

  const template = (word: string, [name, ...rest]: Token[]): Node | undefined => {
    if (name?.kind !== 'string' || name.text[0] === "'") return refuse(`a name belongs behind ${word}`)
    const title = unquote(name.text)
    const argument = trimSpace(rest)
    if (word !== 'template') {
      const outer = scope.splice(1)
      const { nodes, end } = block(true)
      scope.splice(1, scope.length, ...outer)
      if (end.word !== 'end') refuse('unexpected {{else}}')
      named.set(title, nodes)
      if (word === 'define') return argument.length > 0 ? refuse('unexpected text in define clause') : undefined
    }
    return {
      kind: 'template',
      name: title,
      pipe: argument.length > 0 ? readPipe(argument, scope, false, meter) : undefined,
    }
  }

  const conditional = (kind: 'if' | 'with' | 'range', tokens: Token[]): Node => {
    const before = scope.length
    const pipe = readPipe(tokens, scope, kind === 'range', meter)
    if (kind === 'range') loops++
    const { nodes: then, end } = block(true)
    if (kind === 'range') loops--
    const otherwise = alternative(kind, end)
    scope.length = before
    return { kind, pipe, then, otherwise } as Node
  }

  const alternative = (kind: 'if' | 'with' | 'range', { word, tokens }: End): Node[] => {
    if (word === 'end') return []
    const [first, ...rest] = tokens
    if (first)
      return first.text === kind && kind !== 'range' ? [conditional(kind, trimSpace(rest))] : refuse('unexpected else')
    const { nodes, end } = block(true)
    return end.word === 'end' ? nodes : refuse('expected end; found {{else}}')
  }

  const { nodes } = block(false)
  return { nodes, named }
}

const trimSpace = (tokens: Token[]): Token[] => (tokens[0]?.kind === 'space' ? tokens.slice(1) : tokens)

/** `scope` holds the names of variables; declared ones are added. */
const readPipe = (tokens: readonly Token[], scope: string[], isRange: boolean, { spend }: Meter): Pipe => {
  let at = 0
  const peek = () => tokens[at]
  const skipSpace = () => {
    while (peek()?.kind === 'space') at++
  }

  const declaration = (): Pick<Pipe, 'declares' | 'assigns'> => {
    const text = tokens.map((token) => token.text).join('')
    const [head, first, second, sign] =
      /^\s*(\$[\p{L}\p{Nd}_]*)\s*(?:,\s*(\$[\p{L}\p{Nd}_]*)\s*)?(:?=)/u.exec(text) ?? []
    if (head === undefined || first === undefined) return { declares: [], assigns: false }
    if (second !== undefined && !isRange) refuse('too many declarations')
    let length = 0
    for (const { text: part } of tokens) {
      if (length >= head.length) break
      length += part.length
      at++
    }
    return { declares: [first, ...(second === undefined ? [] : [second])], assigns: sign === '=' }
  }

  const commands = (isInner: boolean): Operand[][] => {
    let command: Operand[] = []
    const list = [command]
    for (;;) {
      skipSpace()
      const token = peek()
      if (!token) return isInner ? refuse('unclosed left paren') : list
      if (token.text === ')' && token.kind === 'mark') return isInner ? list : refuse('unexpected right paren')
      if (token.kind === 'mark' && token.text === '|') {
        at++
        command = []
        list.push(command)
        continue
      }
      command.push(operand(token))
      const after = peek()
      if (after && after.kind !== 'space' && after.text !== ')' && after.text !== '|')
        refuse('unexpected text in operand')
    }
  }

  const operand = (token: Token): Operand => {
    at++
    const start = base(token)
    const path: string[] = token.kind === 'field' ? [token.text.slice(1)] : []
    for (let next = peek(); next?.kind === 'field'; next = peek()) {
      path.push(next.text.slice(1))
      at++
    }
    return { ...start, path }
  }

  const base = (token: Token): Operand => {
    const path: string[] = []
    if (token.kind === 'field' || (token.kind === 'mark' && token.text === '.')) return { kind: 'dot', path }
    if (token.kind === 'string') {
      const text = unquote(token.text)
      const value = token.text[0] === "'" ? { int: BigInt(text.codePointAt(0) ?? 0) } : text
      return { kind: 'literal', value, path }
    }
    if (token.kind === 'number') return { kind: 'literal', value: numberOf(token.text), path }
    if (token.kind === 'variable') {
      spend(scope.length)
      if (!scope.includes(token.text)) refuse(`undefined variable ${token.text}`)
      return { kind: 'variable', name: token.text, path }
    }
    if (token.kind === 'mark' && token.text === '(') {
      const inner = commands(true)
      at++
      return { kind: 'pipe', pipe: checked({ declares: [], assigns: false, commands: inner }), path }
    }
    if (token.text === 'true' || token.text === 'false') return { kind: 'literal', value: token.text === 'true', path }
    if (token.text === 'nil') return { kind: 'nil', path }
    if (token.kind !== 'word' || !functions.has(token.text)) return refuse(`function ${token.text} not defined`)
    return { kind: 'function', name: token.text, path }
  }

  const { declares, assigns } = declaration()
  const known = scope.length
  const pipe = checked({ declares, assigns, commands: commands(false) })
  scope.length = known
  if (assigns && declares.some((name) => !scope.includes(name))) refuse('undefined variable')
  if (!assigns) scope.push(...declares)
  return pipe
}

const checked = (pipe: Pipe): Pipe => {
  for (const [index, [first, ...rest]] of pipe.commands.entries()) {
    if (!first) refuse('missing value for command')
    else if (index > 0 && first.kind !== 'function') refuse('only a function can be given what comes before it')
    else if (first.kind === 'nil' && rest.length === 0) refuse('nil is not a command')
    else if (first.kind !== 'function' && rest.length > 0) refuse("can't give argument to non-function")
  }
  return pipe
}
