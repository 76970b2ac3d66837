import type { RegoNumber, Value } from '../values.ts'

/** Go's text/template, read: what stands between `{{` and `}}`. */

/** A number that the template itself has; the numbers of the data are texts to Go. */
export type TemplateNumber = { int: bigint } | { float: number }
export type TemplateValue = undefined | TemplateNumber | Exclude<Value, RegoNumber> | RegoNumber

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

export class TemplateError extends Error {}

const fail = (message: string): never => {
  throw new TemplateError(message)
}

// --- tokens

type Token = { kind: 'space' | 'mark' | 'word' | 'field' | 'variable' | 'string' | 'number'; text: string }
type Piece = { text: string } | { tokens: Token[] }

const patterns: readonly [Token['kind'] | 'comment', RegExp][] = [
  ['space', /[ \t\r\n]+/y],
  ['comment', /\/\*[\s\S]*?\*\//y],
  ['string', /"(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\\n]|\\(?:[^xuU]|x..|u....|U........))'/y],
  ['variable', /\$[\p{L}\p{Nd}_]*/uy],
  [
    'number',
    /[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(?:[eE][+-]?[0-9_]+)?)/y,
  ],
  ['field', /\.[\p{L}_][\p{L}\p{Nd}_]*/uy],
  ['word', /[\p{L}_][\p{L}\p{Nd}_]*/uy],
  ['mark', /:=|[=|(),.]/y],
]

const pieces = (source: string): Piece[] => {
  const found: Piece[] = []
  let at = 0
  let trimNext = false
  while (at < source.length) {
    const open = source.indexOf('{{', at)
    let text = source.slice(at, open < 0 ? undefined : open)
    if (trimNext) text = text.replace(/^[ \t\r\n]+/, '')
    const trimsBefore = open >= 0 && /^-[ \t\r\n]/.test(source.slice(open + 2, open + 4))
    if (trimsBefore) text = text.replace(/[ \t\r\n]+$/, '')
    if (text !== '') found.push({ text })
    if (open < 0) break
    const action = readTokens(source, open + (trimsBefore ? 3 : 2))
    if (action.tokens.length > 0) found.push({ tokens: action.tokens })
    at = action.end
    trimNext = action.trims
  }
  return found
}

const readTokens = (source: string, from: number): { tokens: Token[]; end: number; trims: boolean } => {
  const tokens: Token[] = []
  let isComment = false
  for (let at = from; ; ) {
    if (source.startsWith('}}', at)) return finish(tokens, isComment, at + 2, false)
    if (source.startsWith('-}}', at) && tokens.at(-1)?.kind === 'space') return finish(tokens, isComment, at + 3, true)
    const next = tokenAt(source, at)
    if (next.kind === 'comment') isComment = true
    else tokens.push({ kind: next.kind, text: next.text })
    at += next.text.length
  }
}

const finish = (tokens: Token[], isComment: boolean, end: number, trims: boolean) => {
  const trimmed = tokens.slice(
    tokens[0]?.kind === 'space' ? 1 : 0,
    tokens.length > 1 && tokens.at(-1)!.kind === 'space' ? -1 : undefined,
  )
  if (trimmed.length === 0 && !isComment) fail('missing value for command')
  return { tokens: isComment ? [] : trimmed, end, trims }
}

const tokenAt = (source: string, at: number): { kind: Token['kind'] | 'comment'; text: string } => {
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = at
    const [text] = pattern.exec(source) ?? []
    if (text !== undefined) return { kind, text }
  }
  return fail(at >= source.length ? 'unclosed action' : 'unexpected character')
}

const escapes: Record<string, string> = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

const unquote = (text: string): string => {
  const inside = text.slice(1, -1)
  if (text[0] === '`') return inside.replaceAll('\r', '')
  return inside.replace(
    /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))/g,
    (_all, x?: string, u?: string, long?: string, octal?: string, other?: string) => {
      if (other !== undefined) return escapes[other] ?? ('\\\'"'.includes(other) ? other : fail('bad escape'))
      const code = octal === undefined ? Number.parseInt((x ?? u ?? long)!, 16) : Number.parseInt(octal, 8)
      return code > 0x10ffff ? fail('bad escape') : String.fromCodePoint(code)
    },
  )
}

const numberOf = (text: string): TemplateNumber => {
  const bare = text.replaceAll('_', '').replace(/^\+/, '')
  const [, sign = '', digits = ''] = /^(-?)(.*)$/.exec(bare)!
  const signed = (value: bigint) => ({ int: sign === '-' ? -value : value })
  if (/^0[xXbBoO]/.test(digits)) return signed(BigInt(digits))
  if (/^0[0-7]+$/.test(digits)) return signed(BigInt(`0o${digits.slice(1)}`))
  if (/^\d+$/.test(digits)) return signed(BigInt(digits))
  const value = Number(bare)
  // 1e3 is an integer too, but one of 64 bits.
  return Number.isInteger(value) && Math.abs(value) < 2 ** 63 && !digits.includes('.')
    ? { int: BigInt(value) }
    : { float: value }
}

// --- structure

const functions = 'and or not call html index slice js len print printf println urlquery eq ne lt le gt ge'.split(' ')
const deepest = 100

export const parseTemplate = (source: string): Template => {
  const all = pieces(source)
  const named = new Map<string, readonly Node[]>()
  const scope: string[] = ['$']
  let next = 0
  let loops = 0
  let depth = 0

  type End = { word: string; tokens: Token[] }

  /** Up to the `end` or `else` that belongs to the block, or the end of all. */
  const block = (inside: boolean): { nodes: Node[]; end: End | undefined } => {
    if (++depth > deepest) fail('blocks are nested too deeply')
    const nodes: Node[] = []
    for (;;) {
      const piece = all[next++]
      if (!piece) {
        if (inside) fail('unexpected EOF')
        depth--
        return { nodes, end: undefined }
      }
      if ('text' in piece) {
        nodes.push({ kind: 'text', text: piece.text })
        continue
      }
      const [first, ...rest] = piece.tokens
      const word = first?.kind === 'word' ? first.text : ''
      if (word === 'end' || word === 'else') {
        if (!inside) fail(`unexpected {{${word}}}`)
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
      if (loops === 0 || rest.length > 0) fail(`{{${word}}} outside {{range}}`)
      return { kind: word }
    }
    if (word === 'template' || word === 'block' || word === 'define') return template(word, rest)
    return { kind: 'show', pipe: readPipe(tokens, scope, false) }
  }

  const template = (word: string, [name, ...rest]: Token[]): Node | undefined => {
    if (name?.kind !== 'string' || name.text[0] === "'") return fail(`a name belongs behind ${word}`)
    const title = unquote(name.text)
    const argument = trimSpace(rest)
    if (word !== 'template') {
      const outer = scope.splice(1)
      const { nodes, end } = block(true)
      scope.splice(1, scope.length, ...outer)
      if (end?.word !== 'end') fail('unexpected {{else}}')
      named.set(title, nodes)
      if (word === 'define') return argument.length > 0 ? fail('unexpected text in define clause') : undefined
    }
    return { kind: 'template', name: title, pipe: argument.length > 0 ? readPipe(argument, scope, false) : undefined }
  }

  const conditional = (kind: 'if' | 'with' | 'range', tokens: Token[]): Node => {
    const before = scope.length
    const pipe = readPipe(tokens, scope, kind === 'range')
    if (kind === 'range') loops++
    const { nodes: then, end } = block(true)
    if (kind === 'range') loops--
    const otherwise = alternative(kind, end!)
    scope.length = before
    return { kind, pipe, then, otherwise } as Node
  }

  const alternative = (kind: 'if' | 'with' | 'range', { word, tokens }: End): Node[] => {
    if (word === 'end') return []
    const [first, ...rest] = tokens
    if (first)
      return first.text === kind && kind !== 'range' ? [conditional(kind, trimSpace(rest))] : fail('unexpected else')
    const { nodes, end } = block(true)
    return end!.word === 'end' ? nodes : fail('expected end; found {{else}}')
  }

  const { nodes } = block(false)
  return { nodes, named }
}

const trimSpace = (tokens: Token[]): Token[] => (tokens[0]?.kind === 'space' ? tokens.slice(1) : tokens)

/** `scope` holds the names of variables; declared ones are added. */
const readPipe = (tokens: readonly Token[], scope: string[], isRange: boolean): Pipe => {
  let at = 0
  const peek = () => tokens[at]
  const skipSpace = () => {
    while (peek()?.kind === 'space') at++
  }

  const declaration = (): Pick<Pipe, 'declares' | 'assigns'> => {
    const text = tokens.map((token) => token.text).join('')
    const [head, first, second, sign] =
      /^\s*(\$[\p{L}\p{Nd}_]*)\s*(?:,\s*(\$[\p{L}\p{Nd}_]*)\s*)?(:?=)/u.exec(text) ?? []
    if (head === undefined) return { declares: [], assigns: false }
    if (second !== undefined && !isRange) fail('too many declarations')
    let length = 0
    while (length < head.length) length += tokens[at++]!.text.length
    return { declares: [first!, ...(second === undefined ? [] : [second])], assigns: sign === '=' }
  }

  const commands = (isInner: boolean): Operand[][] => {
    const list: Operand[][] = [[]]
    for (;;) {
      skipSpace()
      const token = peek()
      if (!token) return isInner ? fail('unclosed left paren') : list
      if (token.text === ')' && token.kind === 'mark') return isInner ? list : fail('unexpected right paren')
      if (token.kind === 'mark' && token.text === '|') {
        at++
        list.push([])
        continue
      }
      list.at(-1)!.push(operand())
      const after = peek()
      if (after && after.kind !== 'space' && after.text !== ')' && after.text !== '|')
        fail('unexpected text in operand')
    }
  }

  const operand = (): Operand => {
    const token = tokens[at++]!
    const start = base(token)
    const path: string[] = token.kind === 'field' ? [token.text.slice(1)] : []
    while (peek()?.kind === 'field') path.push(tokens[at++]!.text.slice(1))
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
      if (!scope.includes(token.text)) fail(`undefined variable ${token.text}`)
      return { kind: 'variable', name: token.text, path }
    }
    if (token.kind === 'mark' && token.text === '(') {
      const inner = commands(true)
      at++
      return { kind: 'pipe', pipe: checked({ declares: [], assigns: false, commands: inner }), path }
    }
    if (token.text === 'true' || token.text === 'false') return { kind: 'literal', value: token.text === 'true', path }
    if (token.text === 'nil') return { kind: 'nil', path }
    if (token.kind !== 'word' || !functions.includes(token.text)) return fail(`function ${token.text} not defined`)
    return { kind: 'function', name: token.text, path }
  }

  const { declares, assigns } = declaration()
  const known = scope.length
  const pipe = checked({ declares, assigns, commands: commands(false) })
  scope.length = known
  if (assigns && declares.some((name) => !scope.includes(name))) fail('undefined variable')
  if (!assigns) scope.push(...declares)
  return pipe
}

const checked = (pipe: Pipe): Pipe => {
  for (const [index, [first, ...rest]] of pipe.commands.entries()) {
    if (!first) fail('missing value for command')
    else if (index > 0 && first.kind !== 'function') fail('only a function can be given what comes before it')
    else if (first.kind === 'nil' && rest.length === 0) fail('nil is not a command')
    else if (first.kind !== 'function' && rest.length > 0) fail("can't give argument to non-function")
  }
  return pipe
}
