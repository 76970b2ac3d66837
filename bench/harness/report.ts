import { cpus } from 'node:os'
import { type Measured, type Settings, type Spread, spread } from './measure.ts'

/** The printed page: what was done to whom, one row a contestant, one row a ratio with its bar. */
export const preamble = (pinned: boolean): string =>
  [
    pinned
      ? 'Process under test on CPU 0; load generator, upstream and database on CPU 1.'
      : 'Not pinned to CPUs (taskset or a second CPU is missing): expect a wide range.',
    'Absolute rates on a shared machine mean little; read CPU per request and the ratios. Shown: median (lowest–highest round).',
  ].join('\n')

/** One line: the machine and the rounds. */
export const conditions = ({ rounds, seconds, connections }: Settings): string =>
  `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.versions.node}, ${rounds} interleaved rounds of ${seconds} s, ${connections} connection${connections === 1 ? '' : 's'}`

export const report = (title: string, settings: Settings, tables: Tables): string =>
  [`\n${title}\n${conditions(settings)}`, ...tables.map(printedTable)].join('\n\n')

/** The same for `docs/performance.md`. */
export const markdownReport = (tables: Tables): string => tables.map(markdownTable).join('\n\n')

type Tables = readonly string[][][]

type Sample = Measured['samples'][number]['rounds'][number]
type Column = { head: string; show: (over: (pick: (sample: Sample) => number) => Spread) => string }

const columns: Column[] = [
  {
    head: 'CPU µs/request',
    show: (over) =>
      range(
        over(({ cpuMicros }) => cpuMicros),
        1,
      ),
  },
  {
    head: 'requests/s',
    show: (over) =>
      range(
        over(({ requestsPerSecond }) => requestsPerSecond),
        0,
      ),
  },
  { head: 'p50 ms', show: (over) => over(({ p50Ms }) => p50Ms).median.toFixed(2) },
  { head: 'p99 ms', show: (over) => over(({ p99Ms }) => p99Ms).median.toFixed(2) },
  { head: 'load µs', show: (over) => over(({ loadMicros }) => loadMicros).median.toFixed(1) },
]
const databaseColumn: Column = {
  head: 'PostgreSQL µs/request',
  show: (over) =>
    range(
      over(({ databaseMicros = Number.NaN }) => databaseMicros),
      1,
    ),
}

const costNames = { server: '', database: ', PostgreSQL', p99: ', p99 latency' }

const shownTerm = ({ times, of }: { times: number; of: string }): string =>
  ` ${times < 0 ? '−' : '+'} ${Math.abs(times)} × ${of}`

/** A head and the rows below it; the first column is text. */
export const tablesOf = ({ samples, ratios }: Measured): string[][][] => {
  const hasDatabase = samples.some(({ rounds }) => rounds.some(({ databaseMicros }) => databaseMicros !== undefined))
  const shown = hasDatabase ? columns.toSpliced(1, 0, databaseColumn) : columns
  const hasBars = samples.some(({ atMostP95Ms }) => atMostP95Ms !== undefined)
  const rows = samples.map(({ contestant, atMostP95Ms, rounds }) => {
    const over = (pick: (sample: Sample) => number) => spread(rounds.map(pick))
    const cells = [contestant, ...shown.map(({ show }) => show(over))]
    return hasBars
      ? [
          ...cells,
          ...latencyBar(
            over(({ p95Ms }) => p95Ms),
            atMostP95Ms,
          ),
        ]
      : cells
  })
  const ratioRows = ratios.map(({ of, to, plus, cost = 'server', spread, atMost, atLeast, met }) => [
    `${of} / ${plus ? `(${to}${plus.map(shownTerm).join('')})` : to}${costNames[cost]}`,
    `${range(spread, 2)} ×`,
    atMost === undefined ? (atLeast === undefined ? '' : `≥ ${atLeast} ×`) : `≤ ${atMost} ×`,
    met === undefined ? '' : met ? 'met' : 'MISSED',
  ])
  return [
    [['', ...shown.map(({ head }) => head), ...(hasBars ? ['p95 ms', 'bar', ''] : [])], ...rows],
    ...(ratioRows.length > 0 ? [[['ratio of CPU per request', '', 'bar', ''], ...ratioRows]] : []),
  ]
}

const latencyBar = (p95: Spread, atMost: number | undefined): string[] => [
  range(p95, 1),
  atMost === undefined ? '' : `≤ ${atMost} ms`,
  atMost === undefined ? '' : p95.median <= atMost ? 'met' : 'MISSED',
]

export const range = ({ median, low, high }: Spread, digits: number): string =>
  `${median.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`

/** First column to the left, the others to the right. */
const printedTable = (rows: string[][]): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  const cell = (text: string, column: number) => text[column === 0 ? 'padEnd' : 'padStart'](widths[column] ?? 0)
  const lines = rows.map((row) => `  ${row.map(cell).join('   ')}`.trimEnd())
  return [lines[0], `  ${'─'.repeat(widths.reduce((sum, width) => sum + width + 3, -3))}`, ...lines.slice(1)].join('\n')
}

const markdownTable = ([head = [], ...rows]: string[][]): string => {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_, column) => (column === 0 ? '---' : '--:'))), ...rows.map(line)].join('\n')
}
