import { cpus } from 'node:os'
import { type Measured, type Settings, type Spread, spread } from './measure.ts'

/** The printed page: what was done to whom, one row a contestant, one row a ratio with its bar. */
export const preamble = ({ rounds, seconds, connections }: Settings, pinned: boolean): string =>
  [
    `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.versions.node}, ${rounds} interleaved rounds of ${seconds} s, ${connections} connections`,
    pinned
      ? 'Process under test on CPU 0; load generator, upstream and database on CPU 1.'
      : 'Not pinned to CPUs (taskset or a second CPU is missing): expect a wide range.',
    'Absolute rates on a shared machine mean little; read CPU per request and the ratios. Shown: median (lowest–highest round).',
  ].join('\n')

export const report = (title: string, { samples, ratios }: Measured): string => {
  const rows = samples.map(({ contestant, rounds }) => {
    const over = (pick: (sample: (typeof rounds)[number]) => number) => spread(rounds.map(pick))
    return [
      contestant,
      range(
        over(({ cpuMicros }) => cpuMicros),
        1,
      ),
      range(
        over(({ requestsPerSecond }) => requestsPerSecond),
        0,
      ),
      over(({ p50Ms }) => p50Ms).median.toFixed(2),
      over(({ p99Ms }) => p99Ms).median.toFixed(2),
      over(({ loadMicros }) => loadMicros).median.toFixed(1),
    ]
  })
  const ratioRows = ratios.map(({ of, to, spread, atMost, atLeast, met }) => [
    `${of} / ${to}`,
    `${range(spread, 2)} ×`,
    atMost === undefined ? (atLeast === undefined ? '' : `≥ ${atLeast} ×`) : `≤ ${atMost} ×`,
    met === undefined ? '' : met ? 'met' : 'MISSED',
  ])
  return [
    `\n${title}\n`,
    table([['', 'CPU µs/request', 'requests/s', 'p50 ms', 'p99 ms', 'load µs'], ...rows]),
    ...(ratioRows.length > 0 ? ['', table([['ratio of CPU per request', '', 'bar', ''], ...ratioRows])] : []),
  ].join('\n')
}

const range = ({ median, low, high }: Spread, digits: number): string =>
  `${median.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`

/** First column to the left, the others to the right. */
const table = (rows: string[][]): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  const cell = (text: string, column: number) => text[column === 0 ? 'padEnd' : 'padStart'](widths[column] ?? 0)
  const lines = rows.map((row) => `  ${row.map(cell).join('   ')}`.trimEnd())
  return [lines[0], `  ${'─'.repeat(widths.reduce((sum, width) => sum + width + 3, -3))}`, ...lines.slice(1)].join('\n')
}
