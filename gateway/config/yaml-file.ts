import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml'
import type { z } from 'zod'
import type { Environment } from './load.ts'

export interface YamlProblem {
  line: number
  column: number
  message: string
}

/** A YAML text with the environment filled in, that can say where each of its members stands. */
export interface YamlFile {
  value: unknown
  /** The same with the variables of the environment as they are named: `${NAME}`. */
  written: unknown
  problems: readonly YamlProblem[]
  locate(path: readonly PropertyKey[], message: string): YamlProblem
  /** @param meant what is said after an unknown key. */
  locateIssue(issue: z.core.$ZodIssue, meant: (path: readonly PropertyKey[], key: string) => string): YamlProblem[]
}

/** `${NAME}` in any string value; names as POSIX shells allow them. An unset or empty variable is a problem. */
const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** The variables that a text names, with their values. */
export const namedVariables = (text: string, env: Environment): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(reference)].flatMap(([, name = '']) => {
      const value = env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )

const tooManyAliases = 'its aliases (*) refer to too much'

export const openYaml = (text: string, env: Environment): YamlFile => {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, strict: true, stringKeys: true })
  const problems: YamlProblem[] = []
  const at = (offset: number, message: string): YamlProblem => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col, message }
  }
  for (const error of [...document.errors, ...document.warnings]) problems.push(at(error.pos[0], error.message))
  if (document.errors.length > 0) {
    return { value: {}, written: {}, problems, locate: () => problems[0]!, locateIssue: () => [] }
  }

  // Nested aliases can expand to more than fits in memory.
  const plain = (): unknown => {
    try {
      return document.toJS() ?? {}
    } catch {
      problems.push(at(0, tooManyAliases))
      return {}
    }
  }
  const written = plain()

  visit(document, {
    Scalar(key, node) {
      if (key === 'key' || typeof node.value !== 'string') return
      node.value = node.value.replace(reference, (whole, name: string) => {
        const value = env[name]
        if (value !== undefined && value !== '') return value
        problems.push(at(node.range?.[0] ?? 0, `the environment variable ${name} is not set`))
        return whole
      })
    },
  })

  /** The deepest node on the path that exists: where a missing member should have been. */
  const nodeAt = (path: readonly PropertyKey[]): Node | null => {
    let node: Node | null = document.contents
    for (const step of path) {
      const next: unknown = isMap(node) || isSeq(node) ? node.get(step as string | number, true) : undefined
      if (!next) return node
      node = next as Node
    }
    return node
  }

  const value = problems.some(({ message }) => message === tooManyAliases) ? {} : plain()

  const locate = (path: readonly PropertyKey[], message: string) => at(nodeAt(path)?.range?.[0] ?? 0, message)

  const locateOne = (issue: z.core.$ZodIssue, meant: (path: readonly PropertyKey[], key: string) => string) => {
    const place = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('')
    const name = place.replace(/^\./, '')
    if (issue.code !== 'unrecognized_keys') return [locate(issue.path, `${name}: ${issue.message}`)]
    const parent = nodeAt(issue.path)
    return issue.keys.map((key) => {
      const pair = isMap(parent) ? parent.items.find((item) => isScalar(item.key) && item.key.value === key) : undefined
      const offset = (pair?.key as Node | undefined)?.range?.[0] ?? parent?.range?.[0] ?? 0
      return at(offset, `unknown key ${key}${name ? ` in ${name}` : ''}${meant(issue.path, key)}`)
    })
  }

  return {
    value,
    written,
    problems,
    locate,
    locateIssue: (issue, meant) => mostTelling(issue).flatMap((one) => locateOne(one, meant)),
  }
}

/**
 * For a member that may have several forms, the issues of the form that it comes closest to: the one with the deepest
 * mistake. For a name, the issues of the name.
 */
const mostTelling = (issue: z.core.$ZodIssue): z.core.$ZodIssue[] => {
  if (issue.code === 'invalid_key') return issue.issues.map((inner) => ({ ...inner, path: issue.path }))
  if (issue.code !== 'invalid_union') return [issue]
  const depth = (issues: z.core.$ZodIssue[]) => Math.max(0, ...issues.map(({ path }) => path.length))
  const [best] = issue.errors.toSorted((one, other) => depth(other) - depth(one))
  if (!best || depth(best) === 0) return [issue]
  return best.flatMap((inner) => mostTelling({ ...inner, path: [...issue.path, ...inner.path] }))
}
