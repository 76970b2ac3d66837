/** Changes of files as a patch that `git apply` takes, in the folder of the rules. */

export interface FileChange {
  path: string
  /** Undefined: the file is made. */
  before: string | undefined
  /** Null: it is taken away. */
  after: string | null
}

/** Unchanged lines around a change. */
const around = 3

export const patchOf = (changes: readonly FileChange[]): string =>
  changes
    .filter(({ before, after }) => (before ?? null) !== after)
    .map(patchOfFile)
    .join('')

const patchOfFile = ({ path, before, after }: FileChange): string => {
  const head = [`diff --git a/${path} b/${path}`]
  if (before === undefined) head.push('new file mode 100644')
  if (after === null) head.push('deleted file mode 100644')
  const old = linesOf(before ?? '')
  const next = linesOf(after ?? '')
  // Without lines there is nothing to say of them.
  if (old.length === 0 && next.length === 0) return `${head.join('\n')}\n`
  head.push(
    `--- ${before === undefined ? '/dev/null' : `a/${path}`}`,
    `+++ ${after === null ? '/dev/null' : `b/${path}`}`,
  )
  let start = 0
  while (start < old.length && start < next.length && old[start] === next[start]) start++
  let end = 0
  while (end < old.length - start && end < next.length - start && old.at(-1 - end) === next.at(-1 - end)) end++
  const first = Math.max(0, start - around)
  const left = Math.max(0, end - around)
  const removed = old.slice(start, old.length - end)
  const added = next.slice(start, next.length - end)
  const common = old.slice(first, start)
  const rest = old.slice(old.length - end, old.length - left)
  const oldCount = common.length + removed.length + rest.length
  const nextCount = common.length + added.length + rest.length
  return [
    ...head,
    `@@ -${oldCount === 0 ? 0 : first + 1},${oldCount} +${nextCount === 0 ? 0 : first + 1},${nextCount} @@`,
    ...common.map((line) => ` ${line}`),
    ...removed.map((line) => `-${line}`),
    ...added.map((line) => `+${line}`),
    ...rest.map((line) => ` ${line}`),
    '',
  ].join('\n')
}

/** A last line without its end says so, as git does. */
const linesOf = (text: string): string[] => {
  if (text === '') return []
  const lines = text.split('\n')
  const last = lines.pop()!
  return last === '' ? lines : [...lines, `${last}\n\\ No newline at end of file`]
}
