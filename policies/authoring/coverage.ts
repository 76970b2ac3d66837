import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { allDone, capabilitiesFile, PolicyError, runOpa, type Sources, withSources } from '../engine/index.ts'

/**
 * Which lines of the rules were evaluated, by OPA's account: a line counts when an expression or a rule begins on it.
 */
export interface Coverage {
  /** By file; tests left out. */
  files: ReadonlyMap<string, { covered: ReadonlySet<number>; missed: ReadonlySet<number> }>
  /** Of all lines that count; 100 when there are none. */
  percent: number
}

/** By the `_test.rego` files among the sources, which must pass, and by these questions to entrypoints. */
export const ruleCoverage = (options: {
  sources: Sources
  opa: string
  questions?: readonly { entrypoint: string; input: unknown }[]
}): Promise<Coverage> =>
  withSources(options.sources, async (folder, scratch) => {
    const { opa, questions = [] } = options
    const run = async <Answer>(args: string[], answer: z.ZodType<Answer>): Promise<Answer> => {
      const { stdout, stderr } = await runOpa(opa, [...args, '--capabilities', capabilitiesFile, '-b', '.'], {
        cwd: folder,
      })
      try {
        return answer.parse(JSON.parse(stdout))
      } catch (cause) {
        throw new PolicyError(`the coverage of the rules cannot be found: ${(stderr || stdout).trim()}`, { cause })
      }
    }
    const tested = run(['test', '--coverage', '--format', 'json'], coverageSchema)
    // All inputs in one evaluation, an entrypoint each: a process a case would take longer than all of them.
    const asked = [...Map.groupBy(questions, ({ entrypoint }) => entrypoint)].map(
      async ([entrypoint, group], index) => {
        const file = join(scratch, `inputs-${index}.json`)
        await writeFile(file, JSON.stringify({ inputs: group.map(({ input }) => input ?? null) }))
        const rule = `data${entrypoint
          .split('/')
          .map((part) => `[${JSON.stringify(part)}]`)
          .join('')}`
        const query = `[decision | some one in input.inputs; decision := ${rule} with input as one]`
        const { coverage } = await run(['eval', '--coverage', '--format', 'json', '-i', file, query], evaluationSchema)
        return coverage
      },
    )
    return unionOf(await allDone([tested, ...asked]))
  })

const rangesSchema = z
  .array(z.object({ start: z.object({ row: z.number() }), end: z.object({ row: z.number() }) }))
  .default([])
const coverageSchema = z.object({
  files: z.record(z.string(), z.object({ covered: rangesSchema, not_covered: rangesSchema })).default({}),
})
const evaluationSchema = z.object({ coverage: coverageSchema })

const unionOf = (reports: readonly z.infer<typeof coverageSchema>[]): Coverage => {
  const lines = new Map<string, { covered: Set<number>; missed: Set<number> }>()
  for (const { files } of reports) {
    for (const [file, { covered, not_covered: missed }] of Object.entries(files)) {
      if (file.endsWith('_test.rego')) continue
      const known = lines.get(file) ?? { covered: new Set(), missed: new Set() }
      lines.set(file, known)
      for (const line of linesIn(covered)) known.covered.add(line)
      for (const line of linesIn(missed)) known.missed.add(line)
    }
  }
  let covered = 0
  let missed = 0
  for (const file of lines.values()) {
    file.missed = new Set([...file.missed].filter((line) => !file.covered.has(line)))
    covered += file.covered.size
    missed += file.missed.size
  }
  const percent = covered + missed === 0 ? 100 : (100 * covered) / (covered + missed)
  return { files: new Map([...lines].sort(([a], [b]) => (a < b ? -1 : 1))), percent }
}

/** A range that begins where an expression begins and spans several lines counts them all, as in OPA's own figures. */
const linesIn = (ranges: z.infer<typeof rangesSchema>): number[] =>
  ranges.flatMap(({ start, end }) => Array.from({ length: end.row - start.row + 1 }, (_, index) => start.row + index))

/** A line a file, and the lines that nothing evaluated: `gateway/decision.rego  95 %  not covered: 12-14, 20`. */
export const coverageLines = ({ files, percent }: Coverage): string[] => [
  ...[...files].map(([file, { covered, missed }]) => {
    const share = (100 * covered.size) / Math.max(1, covered.size + missed.size)
    return `${file}  ${share.toFixed(0)} %${missed.size > 0 ? `  not covered: ${spans([...missed])}` : ''}`
  }),
  `coverage: ${percent.toFixed(1)} %`,
]

const spans = (numbers: number[]): string => {
  const found: [number, number][] = []
  for (const number of numbers.sort((a, b) => a - b)) {
    const last = found.at(-1)
    if (last && number === last[1] + 1) last[1] = number
    else found.push([number, number])
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ')
}
