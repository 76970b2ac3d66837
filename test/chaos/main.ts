import { programArguments } from '../support/program-arguments.ts'
import { type ChaosReport, runChaos } from './chaos.ts'
import { brokenVariants, judgeVariant } from './judge-variant.ts'
import { type Variant, variants } from './variants.ts'
import { isGood } from './verdict.ts'

/**
 * `npm run chaos -- [--events 30000] [--kills 60] [--wipes 2] [--stops 2] [--minutes 10] [--seed n] [--variant name]`;
 * exit code 1 when anything is lost. Without `--variant`, first a minute of all that are broken on purpose: the harness
 * must fail each of them.
 */
const { values, misuse } = programArguments(
  `npm run chaos -- [--events 30000] [--kills 60] [--wipes 2] [--stops 2] [--minutes 10] [--seed n] [--variant ${variants.join('|')}]`,
  {
    events: { type: 'string', default: '30000' },
    kills: { type: 'string', default: '60' },
    wipes: { type: 'string', default: '2' },
    stops: { type: 'string', default: '2' },
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    variant: { type: 'string' },
  },
)
const number = (name: Exclude<keyof typeof values, 'variant'>): number => {
  const value = Number(values[name])
  return values[name] !== '' && value >= 0 ? value : misuse(`--${name} takes a number, not "${values[name]}"`)
}
const wanted = values.variant ?? 'none'
const variant = variants.find((name) => name === wanted) ?? misuse(`There is no variant "${wanted}".`)

/** In parts of the deliveries; the receiver itself causes about 1 % by losing answers. */
const maxDuplicateRate = 0.05

const options = {
  events: number('events'),
  kills: number('kills'),
  wipes: number('wipes'),
  stops: number('stops'),
  minutes: number('minutes'),
  seed: number('seed'),
  variant: variant as Variant,
}
// Each start of the embedded PostgreSQL waits for our end.
process.setMaxListeners(0)
let unnoticed: readonly string[] = []
if (values.variant === undefined) {
  console.log('variants that are broken on purpose, at the same time: they mostly wait')
  const judged = await Promise.all(brokenVariants.map(async (name) => ({ name, ...(await judgeVariant(name)) })))
  for (const { name, found, report } of judged)
    console.log(
      `  ${name.padEnd(16)}${found ? 'noticed' : 'NOT NOTICED'}: ${report.missing.length} lost, ${report.outOfOrder.length} out of order`,
    )
  unnoticed = judged.filter(({ found }) => !found).map(({ name }) => name)
}
console.log(`seed ${options.seed}, variant ${options.variant}: ${options.events} changes within ${options.minutes} min`)
const begun = performance.now()
const report = await runChaos({
  ...options,
  onProgress: (text) => console.log(`${((performance.now() - begun) / 1_000).toFixed(1).padStart(6)} s  ${text}`),
})

const listed = (title: string, list: readonly string[]) => {
  console.log(`${title.padEnd(24)}${list.length}`)
  for (const line of list.slice(0, 5)) console.log(`    ${line}`)
}
const print = ({ faults, answered, ...result }: ChaosReport) => {
  const kills = Object.values(faults.kills).reduce((sum, count) => sum + count, 0)
  console.log(`\nevents                  ${result.events}   (${result.unanswered} requests without an answer)`)
  console.log(`deliveries              ${result.deliveries}`)
  console.log(
    `kill -9                 ${kills}   (${Object.entries(faults.kills)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')})`,
  )
  console.log(`stores wiped            ${faults.wipes}`)
  console.log(`relays stopped          ${faults.stops}`)
  console.log(
    `receiver                ${answered.refused} refused, ${answered.lost} answers lost, ${answered.late} late`,
  )
  listed('crashed', result.crashes)
  listed('lost', result.missing)
  listed('out of order', result.outOfOrder)
  listed('never recorded', result.unrecorded)
  listed('nobody asked for', result.strange)
  console.log(`duplicates              ${result.duplicates}   (${(result.duplicateRate * 100).toFixed(2)} %)`)
  console.log(`load, drain             ${result.loadSeconds.toFixed(1)} s, ${result.drainSeconds.toFixed(1)} s`)
}
print(report)
const good = isGood(report, maxDuplicateRate) && report.crashes.length === 0
if (!good) console.log(`\n${report.lastWords}`)
console.log(good ? '\nNothing was lost, nothing came out of order.' : `\nFAILED with seed ${options.seed}`)
if (unnoticed.length > 0) console.log(`FAILED: the harness did not notice ${unnoticed.join(', ')}`)
process.exit(good && unnoticed.length === 0 ? 0 : 1)
