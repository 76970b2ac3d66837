import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { ApiError } from '../../policies/data-api/api-error.ts'
import { findDocument, memberOf } from '../../policies/data-api/document.ts'
import { parseJson } from '../../policies/data-api/read-input.ts'
import { PolicyError } from '../../policies/decide.ts'
import { CompilerMissing } from '../../policies/engine/index.ts'
import { policiesFor } from './eval-sources.ts'
import { type Invocation, UsageError } from './invocation.ts'

/**
 * `surrogate policy eval`: the value of a rule for an input, asked and answered as `opa eval` does. Resolves to 0, to 1
 * where `--fail` or `--fail-defined` say so, to 2 for what cannot be evaluated, to 3 without a compiler.
 */
export const evalPolicies = async (invocation: Invocation): Promise<number> => {
  const { values, flags, say, complain } = invocation
  const format = formats.get(values['format'] ?? 'json')
  if (!format) throw new UsageError(`--format must be one of ${[...formats.keys()].join(', ')}`)
  const [query, ...others] = invocation.positionals
  if (query === undefined || others.length > 0) throw new UsageError('name one query, such as data.example.allow')
  const path = pathOf(query)
  try {
    const { value, metrics } = await evaluate(invocation, path)
    const line = format({ query, value, ...(flags['metrics'] && { metrics }) })
    if (line !== undefined) say(line)
    return (flags['fail'] && value === undefined) || (flags['fail-defined'] && value !== undefined) ? 1 : 0
  } catch (error) {
    if (!(error instanceof PolicyError || error instanceof ApiError)) throw error
    const errors = errorsOf(error)
    if (format === formats.get('json')) say(JSON.stringify({ errors }, null, 2))
    else for (const { message } of errors) complain(message)
    return error instanceof CompilerMissing ? 3 : 2
  }
}

interface Answer {
  query: string
  value: unknown
  metrics?: Record<string, number>
}

const formats = new Map<string, (answer: Answer) => string | undefined>([
  [
    'json',
    ({ query, value, metrics }) => {
      const expressions = [{ value, text: query, location: { row: 1, col: 1 } }]
      return JSON.stringify({ ...(value !== undefined && { result: [{ expressions }] }), metrics }, null, 2)
    },
  ],
  ['pretty', ({ value }) => (value === undefined ? 'undefined' : JSON.stringify(value, null, 2))],
  ['raw', ({ value }) => (typeof value === 'string' ? value : JSON.stringify(value))],
])

/** `data.a.b`, `data.a["b c"]`: what can be compiled as an entrypoint. */
const pathOf = (query: string): string => {
  const steps = /^data((?:\.[A-Za-z_]\w*|\["(?:[^"\\]|\\.)*"\])+)$/.exec(query.trim())?.[1]
  const parts = [...(steps ?? '').matchAll(/\.(\w+)|\[("(?:[^"\\]|\\.)*")\]/g)].map(
    ([, name, quoted]) => name ?? String(JSON.parse(quoted!)),
  )
  if (parts.length === 0 || parts.some((part) => part === '' || part.includes('/'))) {
    throw new UsageError(
      `${query} is no path of a rule, such as data.example.allow: compiled rules answer nothing else`,
    )
  }
  return parts.join('/')
}

const evaluate = async (invocation: Invocation, path: string) => {
  const startedAt = performance.now()
  const input = await inputOf(invocation)
  const compileStartedAt = performance.now()
  const set = await policiesFor(invocation, path)
  const evaluationStartedAt = performance.now()
  const document = findDocument(set, path.split('/').map(encodeURIComponent).join('/'))
  const value = memberOf(set.evaluate(document.entrypoint, input), document)
  return {
    value,
    metrics: {
      timer_rego_input_parse_ns: nanoseconds(startedAt, compileStartedAt),
      timer_rego_module_compile_ns: nanoseconds(compileStartedAt, evaluationStartedAt),
      timer_rego_query_eval_ns: nanoseconds(evaluationStartedAt, performance.now()),
    },
  }
}

const nanoseconds = (from: number, to: number): number => Math.round((to - from) * 1e6)

/** Undefined, as rules see it, where none is given. */
const inputOf = async ({ values, flags }: Invocation): Promise<unknown> => {
  const { input: file } = values
  if (flags['stdin-input']) {
    if (file !== undefined) throw new UsageError('--input and --stdin-input exclude each other')
    return parseJson(await text(process.stdin), 'the input')
  }
  if (file === undefined) return undefined
  const content = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new PolicyError(`${file} cannot be read`, { cause })
  })
  return parseJson(content, file)
}

interface EvalError {
  message: string
  location?: { file: string; row: number; col: number }
}

const errorsOf = (error: PolicyError | ApiError): EvalError[] => {
  if (error instanceof ApiError || error.issues.length === 0) return [{ message: error.message }]
  return error.issues.map(({ file, line = 0, column = 0, message }) => ({
    message,
    ...(file !== undefined && { location: { file, row: line, col: column } }),
  }))
}
