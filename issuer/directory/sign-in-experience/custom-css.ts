import { problem } from '../../base/errors/problems.ts'
import { assetPath } from './links.ts'

/**
 * Stylesheets of operators. What cannot be read here is refused, and what is served is written anew from what was
 * read: a browser never sees anything that this file has not understood. Nothing in it loads what is not ours, and
 * nothing in it can tell what somebody typed.
 */
export interface CustomCss {
  /** What is served. */
  css: string
  /** The paths of pictures that it shows. */
  assets: readonly string[]
}

/** Throws 422 `sign_in_experiences.custom_css_not_allowed` with the line and the reason. */
export const checkCustomCss = (source: string): CustomCss => {
  const tokens = tokenize(source)
  const assets: string[] = []
  let next = 0
  const peek = () => tokens[next]
  const refuse: Refuse = (reason, token = peek() ?? tokens.at(-1)) => refuseAt(token?.line ?? 1, reason)
  /** The tokens up to one of `ends` that stands in no brackets; the end is taken too. */
  const take = (ends: string): { taken: Token[]; end: string | undefined } => {
    const taken: Token[] = []
    let depth = 0
    for (;;) {
      const token = peek()
      if (token === undefined) return { taken, end: undefined }
      if (depth === 0 && token.kind === 'mark' && ends.includes(token.text)) {
        next += 1
        return { taken, end: token.text }
      }
      if (token.text.endsWith('(') || token.text === '[') depth += 1
      if (token.text === ')' || token.text === ']') depth -= 1
      if (depth < 0) refuse(`${token.text} without its beginning`)
      taken.push(token)
      next += 1
    }
  }

  const declarations = (): string => {
    const written: string[] = []
    for (;;) {
      const { taken, end } = take(';{}')
      const [name, colon, ...value] = trim(taken)
      if (end === '{') refuse('rules must not stand in rules')
      if (end === undefined) refuse('a } is missing')
      if (name !== undefined) {
        const isCustom = /^--[\w-]+$/.test(name.text)
        if (name.kind !== 'word' || !(isCustom || /^-?[a-z][a-z-]*$/.test(name.text))) {
          refuse('the name of a property was expected', name)
        }
        if (forbiddenProperties.test(name.text)) refuse(`the property ${name.text} is not allowed`, name)
        if (colon?.text !== ':') refuse('a : was expected', colon ?? name)
        written.push(`${name.text}:${writeValue(trim(value), refuse, assets)}`)
      }
      if (end === '}') return written.join(';')
    }
  }

  const rules = (isNested: boolean): string => {
    let written = ''
    for (;;) {
      while (peek()?.kind === 'space') next += 1
      const token = peek()
      if (token === undefined) {
        if (isNested) refuse('a } is missing')
        return written
      }
      if (isNested && token.text === '}') {
        next += 1
        return written
      }
      const { taken, end } = take('{};')
      const prelude = trim(taken)
      if (token.kind === 'at') {
        if (token.text !== '@media') refuse(`${token.text} is not allowed, only @media`, token)
        if (isNested || end !== '{') refuse('@media stands outside of all rules, with { after it', token)
        written += `@media ${writeCondition(trim(prelude.slice(1)), refuse)}{${rules(true)}}`
      } else {
        if (end !== '{') refuse('a { was expected', token)
        written += `${writeSelector(prelude, refuse)}{${declarations()}}`
      }
    }
  }

  return { css: rules(false), assets }
}

interface Token {
  kind: 'space' | 'word' | 'at' | 'hash' | 'number' | 'text' | 'url' | 'mark'
  text: string
  line: number
}

type Refuse = (reason: string, token?: Token) => never

const refuseAt = (line: number, reason: string): never => {
  throw problem('sign_in_experiences.custom_css_not_allowed', {
    detail: `customCss: line ${line}: ${reason}`,
    data: { line, reason },
  })
}

/**
 * A part of CSS Syntax 3 §4: without escapes, without `<` and `>` but as a combinator, and ASCII outside of texts, so
 * that a browser can only cut it up as this does.
 */
const patterns: readonly [Token['kind'], RegExp][] = [
  ['space', /(?:[ \t\n]|\/\*[\s\S]*?\*\/)+/y],
  // With its argument: what stands in it follows rules of its own.
  ['url', /url\([ \t\n]*(?:"[^"\\\n]*"|'[^'\\\n]*'|[^"'()\\ \t\n]*)[ \t\n]*\)/iy],
  ['text', /"[^"\\\n<]*"|'[^'\\\n<]*'/y],
  ['at', /@[a-z-]+/y],
  ['hash', /#[\w-]+/y],
  ['number', /[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:%|[a-z]+)?/y],
  // A name, and the bracket that makes it a function.
  ['word', /(?:--|-?[a-zA-Z_])[\w-]*\(?/y],
  ['mark', /[{}()[\]:;,.*>+~=/!-]/y],
]

const tokenize = (source: string): Token[] => {
  const text = source.replace(/\r\n?|\f/g, '\n')
  const tokens: Token[] = []
  let at = 0
  let line = 1
  while (at < text.length) {
    const found = patterns
      .map(([kind, pattern]) => {
        pattern.lastIndex = at
        return { kind, text: pattern.exec(text)?.[0] }
      })
      .find((one) => one.text !== undefined)
    if (found?.text === undefined)
      return refuseAt(line, `${JSON.stringify([...text.slice(at, at + 2)][0])} is not allowed here`)
    tokens.push({ kind: found.kind, text: found.kind === 'space' ? ' ' : found.text, line })
    line += found.text.split('\n').length - 1
    at += found.text.length
  }
  return tokens
}

const trim = (tokens: readonly Token[]): Token[] => {
  const isSpace = (token: Token | undefined) => token?.kind === 'space'
  const first = tokens.findIndex((token) => !isSpace(token))
  const last = tokens.findLastIndex((token) => !isSpace(token))
  return first === -1 ? [] : tokens.slice(first, last + 1)
}

/** Old browsers ran scripts by the first two. */
const forbiddenProperties = /^(behavior|-moz-binding|-ms-behavior)$/

const functions = new Set(
  (
    'rgb rgba hsl hsla hwb lab lch oklab oklch color color-mix light-dark calc min max clamp var env ' +
    'linear-gradient radial-gradient conic-gradient repeating-linear-gradient repeating-radial-gradient ' +
    'repeating-conic-gradient translate translatex translatey translate3d scale scalex scaley rotate skew skewx ' +
    'skewy matrix perspective cubic-bezier steps blur brightness contrast drop-shadow grayscale hue-rotate invert ' +
    'opacity saturate sepia minmax repeat fit-content inset circle ellipse polygon'
  ).split(' '),
)

const writeValue = (tokens: readonly Token[], refuse: Refuse, assets: string[]): string => {
  if (tokens.length === 0) refuse('a value was expected')
  let depth = 0
  const written = tokens.map((token) => {
    const { kind, text } = token
    if (kind === 'url') {
      const path = text
        .slice(4, -1)
        .trim()
        .replace(/^["']|["']$/g, '')
      if (!assetPath.test(path)) refuse('url() may only name a picture that was uploaded here', token)
      assets.push(path)
      return `url("${path}")`
    }
    if (kind === 'at' || (kind === 'mark' && '{}[];=>~:.'.includes(text))) refuse(`${text} is not allowed here`, token)
    if (kind === 'word' && text.endsWith('(')) {
      const name = text.slice(0, -1).toLowerCase()
      if (!functions.has(name)) refuse(`the function ${name}() is not allowed`, token)
      depth += 1
    }
    if (text === '(') depth += 1
    if (text === ')') depth -= 1
    return text
  })
  if (depth !== 0) refuse('a ) is missing', tokens[0])
  return written.join('')
}

const pseudoClasses = /^(not|is|where|has|nth-child|nth-last-child|nth-of-type|lang|dir)\($/
/** Of attributes: whether they are there, and of these what they are. None tells what somebody typed. */
const comparable = /^(type|lang|dir|role|aria-[a-z]+)$/

const writeSelector = (tokens: readonly Token[], refuse: Refuse): string => {
  if (tokens.length === 0) refuse('a selector was expected')
  let depth = 0
  for (const [index, token] of tokens.entries()) {
    const { kind, text } = token
    if (kind === 'text' && tokens[index - 1]?.text !== '=') refuse('a text is not allowed in a selector', token)
    if (kind === 'url' || kind === 'at') refuse(`${text} is not allowed in a selector`, token)
    if (kind === 'mark' && '{};/!('.includes(text)) refuse(`${text} is not allowed in a selector`, token)
    if (kind === 'word' && text.endsWith('(')) {
      if (!pseudoClasses.test(text)) refuse(`${text}) is not allowed in a selector`, token)
      depth += 1
    }
    if (text === ')') depth -= 1
    if (text === '=' && !comparable.test(tokens[index - 1]?.text ?? '')) {
      refuse('only type, lang, dir, role and aria-… may be compared in [ ]', token)
    }
    if (text === 'value') refuse('what somebody typed is not for a selector', token)
  }
  if (depth !== 0) refuse('a ) is missing', tokens[0])
  return tokens.map(({ text }) => text).join('')
}

const writeCondition = (tokens: readonly Token[], refuse: Refuse): string => {
  if (tokens.length === 0) refuse('a condition was expected')
  const wrong = tokens.find(
    ({ kind, text }) =>
      !(['space', 'number'].includes(kind) || (kind === 'word' && !text.endsWith('(')) || '(),:'.includes(text)),
  )
  if (wrong) refuse(`${wrong.text} is not allowed after @media`, wrong)
  return tokens.map(({ text }) => text).join('')
}
