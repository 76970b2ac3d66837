import { parseArgs } from 'node:util'
import { fuzz } from './run.ts'

/** `npm run fuzz -- [--seed 1] [--seconds 60]`: see `run.ts`. Exits with 1 when something was found, and says how to repeat it. */
const { values } = parseArgs({ options: { seed: { type: 'string' }, seconds: { type: 'string', default: '60' } } })
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32))
const deadline = performance.now() + Number(values.seconds) * 1000

const { conversations, forwarded, answers, failures } = await fuzz({
  seed,
  conversations: Number.MAX_SAFE_INTEGER,
  until: () => performance.now() > deadline,
})
console.log(
  `seed ${seed}: ${conversations} conversations, ${forwarded} requests went upstream; answers by status:`,
  answers,
)
for (const failure of failures) console.error(`\nFOUND ${failure}`)
if (failures.length > 0) process.exitCode = 1
