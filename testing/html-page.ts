/**
 * Reads what a sign-in page without scripts offers: its forms, as a browser would submit them (HTML Standard §4.10.21),
 * its title, and what it says is wrong. Enough for well-formed pages; it repairs none.
 */
export interface HtmlPage {
  title: string
  forms: readonly HtmlForm[]
  /** Texts of elements with `role="alert"`. */
  alerts: readonly string[]
  /** Everything that can be read on it from its first heading on, on one line. */
  text: string
}

export interface HtmlForm {
  /** As written; empty is the page's own address. */
  action: string
  method: 'get' | 'post'
  fields: readonly HtmlField[]
  buttons: readonly HtmlButton[]
}

export interface HtmlField {
  name: string
  value: string
  /** `hidden`, `text`, `password`, `checkbox`, …; `select` and `textarea` too. */
  type: string
  /** Of a check box or radio button; others are always sent. */
  isChecked: boolean
  isReadOnly: boolean
}

export interface HtmlButton {
  name: string
  value: string
}

/** The fields in the order of the page, with these values in place of its own, and the button that is pressed. */
export const submissionOf = (
  { fields }: HtmlForm,
  { values = {}, pressed }: { values?: Readonly<Record<string, string>>; pressed?: HtmlButton | undefined } = {},
): URLSearchParams => {
  const sent = new URLSearchParams()
  for (const { name, value, isChecked } of fields) {
    if (name !== '' && isChecked) sent.append(name, Object.hasOwn(values, name) ? values[name]! : value)
  }
  if (pressed && pressed.name !== '') sent.append(pressed.name, pressed.value)
  return sent
}

export const readHtml = (html: string): HtmlPage => {
  const forms: (HtmlForm & { fields: HtmlField[]; buttons: HtmlButton[] })[] = []
  const alerts: string[] = []
  let form: (typeof forms)[number] | undefined
  let select: { name: string; value: string | undefined; isDisabled: boolean } | undefined
  let alert: { tag: string; depth: number; text: string } | undefined
  let title = ''
  let text = ''
  let hasHeading = false

  const opened: Record<string, (attributes: Attributes, content: string) => void> = {
    form: ({ action = '', method = 'get' }) => {
      form = {
        action: action.trim(),
        method: method.toLowerCase() === 'post' ? 'post' : 'get',
        fields: [],
        buttons: [],
      }
      forms.push(form)
    },
    input: (attributes) => {
      const { name = '', value, disabled, checked, readonly, type = 'text' } = attributes
      const kind = type.toLowerCase()
      if (disabled !== undefined || ['button', 'reset', 'file'].includes(kind)) return
      if (kind === 'submit' || kind === 'image') return void form?.buttons.push({ name, value: value ?? '' })
      const canBeChecked = kind === 'checkbox' || kind === 'radio'
      form?.fields.push({
        name,
        value: value ?? (canBeChecked ? 'on' : ''),
        type: kind,
        isChecked: !canBeChecked || checked !== undefined,
        isReadOnly: readonly !== undefined,
      })
    },
    button: ({ name = '', value = '', disabled, type = 'submit' }) => {
      if (disabled === undefined && type.toLowerCase() === 'submit') form?.buttons.push({ name, value })
    },
    select: ({ name = '', disabled }) => {
      select = { name, value: undefined, isDisabled: disabled !== undefined }
    },
    option: ({ value = '', selected, disabled }) => {
      if (select && disabled === undefined && (select.value === undefined || selected !== undefined))
        select.value = value
    },
    textarea: ({ name = '', disabled, readonly }, content) => {
      if (disabled !== undefined) return
      const value = decode(content.replace(/^\r?\n/, ''))
      form?.fields.push({ name, value, type: 'textarea', isChecked: true, isReadOnly: readonly !== undefined })
    },
    title: (_, content) => {
      title ||= oneLine(decode(content))
    },
    h1: () => {
      if (!hasHeading) text = ''
      hasHeading = true
    },
  }
  const closed: Record<string, () => void> = {
    form: () => {
      form = undefined
    },
    select: () => {
      const { name, value, isDisabled } = select ?? { name: '', value: undefined, isDisabled: true }
      if (value !== undefined && !isDisabled)
        form?.fields.push({ name, value, type: 'select', isChecked: true, isReadOnly: false })
      select = undefined
    },
  }

  for (const { kind, name, attributes, content } of tokensOf(html)) {
    if (kind === 'text') {
      text += decode(content)
      if (alert) alert.text += decode(content)
      continue
    }
    // Words of neighbouring elements are not one word.
    text += ' '
    if (alert) alert.text += ' '
    if (kind === 'open') {
      if (!alert && attributes['role'] === 'alert') alert = { tag: name, depth: 0, text: '' }
      if (alert?.tag === name) alert.depth += 1
      opened[name]?.(attributes, content)
    } else {
      closed[name]?.()
      if (alert?.tag !== name) continue
      alert.depth -= 1
      if (alert.depth > 0) continue
      alerts.push(oneLine(alert.text))
      alert = undefined
    }
  }
  return { title, forms, alerts, text: oneLine(text) }
}

type Attributes = Readonly<Record<string, string | undefined>>

interface Token {
  kind: 'open' | 'close' | 'text'
  name: string
  attributes: Attributes
  /** Of text, and of elements that hold nothing but text. */
  content: string
}

const tagStart = /<(\/?)([a-z][a-z\d-]*)/iy
const attribute = /([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?/g
/** Nothing in them is a tag. */
const textElements: ReadonlySet<string> = new Set(['script', 'style', 'textarea', 'title'])

/** Reads every character once; what is not closed goes to the end. */
function* tokensOf(html: string): Generator<Token> {
  const text = (content: string): Token => ({ kind: 'text', name: '', attributes: {}, content })
  let at = 0
  while (at < html.length) {
    const next = html.indexOf('<', at)
    if (next < 0) return yield text(html.slice(at))
    if (next > at) yield text(html.slice(at, next))
    tagStart.lastIndex = next
    const [start, slash, found] = tagStart.exec(html) ?? []
    if (start === undefined || found === undefined) {
      at = afterNoTag(html, next)
      if (at === next + 1) yield text('<')
      continue
    }
    const begin = next + start.length
    const end = endOfTag(html, begin)
    if (end < 0) return
    at = end + 1
    const name = found.toLowerCase()
    if (slash === '/') {
      yield { kind: 'close', name, attributes: {}, content: '' }
      continue
    }
    let content = ''
    if (textElements.has(name)) {
      const rest = html.slice(at)
      const length = rest.search(new RegExp(`</${name}[\\s/>]`, 'i'))
      content = length < 0 ? rest : rest.slice(0, length)
      at += content.length
    }
    yield { kind: 'open', name, attributes: attributesOf(html.slice(begin, end)), content }
  }
}

/** Behind a comment or the doctype, or behind a `<` that begins nothing. */
const afterNoTag = (html: string, at: number): number => {
  if (html[at + 1] !== '!') return at + 1
  const mark = html.startsWith('<!--', at) ? '-->' : '>'
  const end = html.indexOf(mark, at + 2)
  return end < 0 ? html.length : end + mark.length
}

/** The `>` that is in no quoted value; -1 without one. */
const endOfTag = (html: string, from: number): number => {
  let quote = ''
  for (let at = from; at < html.length; at += 1) {
    const character = html[at]!
    if (quote !== '') quote = character === quote ? '' : quote
    else if (character === '"' || character === "'") quote = character
    else if (character === '>') return at
  }
  return -1
}

/** The first of a name counts. */
const attributesOf = (text: string): Attributes => {
  const found = new Map<string, string>()
  for (const [, name, double, single, bare] of text.matchAll(attribute)) {
    const key = name!.toLowerCase()
    if (!found.has(key)) found.set(key, decode(double ?? single ?? bare ?? ''))
  }
  return Object.fromEntries(found)
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

const decode = (text: string): string =>
  text.replace(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]+));/gi,
    (whole, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return Object.hasOwn(entities, name) ? entities[name]! : whole
      const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal)
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd'
    },
  )

/** Without control characters either: it is printed in a terminal. */
const oneLine = (text: string): string => text.replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim()
