import type { z } from 'zod'
import { type ProblemCode, problem } from './errors/problems.ts'

/** The issues of a failed parse as callers see them: a path and a sentence, never the rejected value. */
const issuesOf = ({ issues }: Pick<z.ZodError, 'issues'>): InputIssue[] =>
  (closestOf(issues) ?? issues).map((issue) => ({ path: issue.path.join('.'), message: issue.message }))

/** Of an input that may have several forms, what is wrong with the one it comes closest to, the first of equals. */
const closestOf = ([issue]: z.ZodError['issues']) =>
  issue?.code === 'invalid_union' && issue.path.length === 0
    ? issue.errors.toSorted((one, other) => one.length - other.length)[0]
    : undefined

/** More help nobody, and an answer must not be larger than its request. */
const maxIssues = 50

/** What is wrong with an input: `path` names the member, `a.b` for one within another. */
export interface InputIssue {
  path: string
  message: string
}

/**
 * Parses input at the edge. Throws `AppError` with the issues (50 at most) in `data` and the first in `detail`;
 * `codeOf` says its code by the issues, by default `guard.invalid_input` (400).
 */
export const parseInput = <Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  codeOf: (issues: readonly InputIssue[]) => ProblemCode = () => 'guard.invalid_input',
): z.output<Schema> => {
  const result = schema.safeParse(input)
  if (result.success) return result.data
  const issues = issuesOf(result.error).slice(0, maxIssues)
  throw problem(codeOf(issues), {
    detail: issues.map(({ path, message }) => (path ? `${path}: ${message}` : message))[0],
    data: { issues },
  })
}
