import { programArguments } from '../../support/program-arguments.ts'
import { fuzz } from './run.ts'

/**
 * `npm run fuzz -- [--seed 1] [--seconds 60]`: see `run.ts`. Exits with 1 when something was found, and says how to
 * repeat it.
 */
const { values, misuse } = programArguments('npm run fuzz -- [--seed 1] [--seconds 60]', {
  seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
  seconds: { type: 'string', default: '60' },
})
const number = (name: keyof typeof values): number => {
  const value = Number(values[name])
  return values[name] !== '' && value >= 0 ? value : misuse(`--${name} takes a number, not "${values[name]}"`)
}
const seed = number('seed')
const deadline = performance.now() + number('seconds') * 1000

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
